# Asks a Leeward portal from R (4.2 or newer) with the package httr2.
#   source("leeward-portal.R")
#   portal <- lw_connect("https://portal.hospital.example", token = Sys.getenv("LEEWARD_TOKEN"))
#   lw_indexes(portal)                                           # what the project may ask, and what is left
#   lw_price(portal, index, "fever & cough", within = 20)        # price in epsilon; nothing is charged
#   lw_frame(lw_ask(portal, index, "fever", within = 20))        # a count with its 95 % interval
# A question takes `within` or `epsilon`, and `conditions`, `by`, `most`, `count`, `unit`, as the portal's pages do.

lw_connect <- function(url, token = Sys.getenv("LEEWARD_TOKEN")) {
  here <- grepl("^http://(127[.]0[.]0[.]1|localhost|\\[::1\\])(:|/|$)", url)
  if (!nzchar(token)) stop("a portal needs a token: give `token`, or set LEEWARD_TOKEN", call. = FALSE)
  if (!grepl("^https://", url) && !here) stop("the address of a portal must begin with https", call. = FALSE)
  portal <- list(url = sub("/+$", "", url), token = token)
  portal$project <- names(lw_get(portal, "/me")$projects)
  portal
}
lw_indexes <- function(portal) lw_get(portal, paste0("/projects/", portal$project))$indexes
lw_terms <- function(portal, index, beginning) {
  lw_get(portal, paste0("/indexes/", index, "/vocabulary"), list(prefix = beginning))
}
lw_price <- function(portal, index, terms, ...) lw_post(portal, "/questions:price", index, terms, ...)
lw_rehearse <- function(portal, index, terms, ...) lw_post(portal, "/questions:rehearse", index, terms, ...)
# Asks and pays. A lost reply is asked for again with the same key, and charged once.
lw_ask <- function(portal, index, terms, ..., key = lw_key()) {
  lw_post(portal, "/questions", index, terms, ..., key = key)
}
lw_answers <- function(portal) {
  parts <- list()
  after <- ""
  repeat {
    part <- lw_get(portal, paste0("/projects/", portal$project, "/answers"), list(after = after))
    if (!length(part)) return(do.call(rbind, parts))
    parts <- c(parts, list(part))
    after <- part$id[nrow(part)]
  }
}
lw_releases <- function(portal) lw_get(portal, "/releases")
lw_download <- function(portal, release, path, to = basename(path)) {
  request <- lw_request(portal, paste0("/releases/", release, "/files/", path))
  httr2::req_perform(request, path = to)
  invisible(to)
}
# An answer as a data frame: bin, count, low, high; NA where a count is hidden.
lw_frame <- function(answer) {
  counts <- if (is.list(answer$answer)) answer$answer else list(answer$answer)
  ends <- if (is.list(answer$answer)) answer$interval else list(answer$interval)
  number <- function(value) if (is.null(value)) NA_real_ else as.numeric(value)
  end <- function(which) vapply(ends, function(pair) if (is.null(pair)) NA_real_ else number(pair[[which]]), 0)
  data.frame(bin = if (is.null(names(counts))) "" else names(counts), count = unname(vapply(counts, number, 0)),
             low = unname(end(1)), high = unname(end(2)))
}
lw_key <- function() paste(format(openssl::rand_bytes(16)), collapse = "")
lw_request <- function(portal, path, query = list()) {
  request <- httr2::request(paste0(portal$url, "/api/v1", path))
  request <- httr2::req_url_query(request, !!!query)
  request <- httr2::req_auth_bearer_token(request, portal$token)
  request <- httr2::req_options(request, followlocation = FALSE)  # the token goes nowhere else
  request <- httr2::req_retry(request, max_tries = 4, is_transient = function(r) httr2::resp_status(r) %in% c(429, 503))
  httr2::req_error(request, is_error = function(r) httr2::resp_status(r) >= 300, body = function(r) {
    tryCatch(httr2::resp_body_json(r, check_type = FALSE)$detail, error = function(e) NULL)
  })
}
lw_get <- function(portal, path, query = list()) {
  httr2::resp_body_json(httr2::req_perform(lw_request(portal, path, query)), simplifyVector = TRUE)
}
lw_post <- function(portal, path, index, terms, ..., key = NULL) {
  body <- list(project = portal$project, index = index, terms = terms, ...)
  request <- httr2::req_body_json(lw_request(portal, path), body)
  if (!is.null(key)) request <- httr2::req_headers(request, `Idempotency-Key` = key)
  reply <- tryCatch(httr2::req_perform(request), httr2_failure = function(failure) {
    if (is.null(key)) stop(failure)
    httr2::req_perform(request)
  })
  httr2::resp_body_json(reply)
}
