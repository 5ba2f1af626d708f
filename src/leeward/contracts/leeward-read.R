# Reads this release in R (4.2 or newer, no packages), from its CSV files. In the folder with release.json:
#   source("leeward-read.R")
#   release <- lw_open(".")
#   release$tables$codes                      # each table by the name of its file
#   lw_count(release, c("401.9", "250.00"))   # patients with all of these codes: low, expected, high
# low and high are certain. The expected number is that of `leeward estimate`, which alone has the one of disassociation.

lw_open <- function(folder = ".") {
  manifest <- readLines(file.path(folder, "release.json"), encoding = "UTF-8")
  value <- function(key, lines) {
    found <- sub("^.*?: \"(.*)\",?$", "\\1", grep(paste0("^ *\"", key, "\": "), lines, value = TRUE), perl = TRUE)
    gsub("\\\\(.)", "\\1", found)
  }
  entries <- manifest[seq(match("  \"files\": [", manifest), length(manifest))]
  csv <- grepl("[.]csv$", value("path", entries))
  paths <- value("path", entries)[csv]
  lw_compare(file.path(folder, paths), value("sha256", entries)[csv])
  names <- sub("^data/(.*)[.]csv$", "\\1", paths)
  list(method = value("method", grep("^  \"", manifest, value = TRUE)),
       tables = setNames(Map(lw_table, file.path(folder, paths), names), names))
}
lw_compare <- function(files, digests) {
  missing <- files[!file.exists(files)]
  if (length(missing)) stop("not there: ", missing[1], "; get the release again", call. = FALSE)
  own <- get0("sha256sum", asNamespace("tools"))  # R 4.5 and newer
  if (is.null(own) && !nzchar(Sys.which("sha256sum"))) {
    return(message("SHA-256 was not checked: this R is older than 4.5, and there is no sha256sum."))
  }
  found <- if (is.null(own)) sub("^\\\\", "", system2("sha256sum", shQuote(files), stdout = TRUE)) else own(files)
  changed <- files[substr(found, 1, 64) != digests]
  if (length(changed)) stop(changed[1], ": not as released (another SHA-256); get the release again", call. = FALSE)
}
lw_table <- function(file, name) {
  rows <- read.csv(file, colClasses = "character", na.strings = character(), check.names = FALSE,
                   blank.lines.skip = FALSE, encoding = "UTF-8")
  numbers <- c("record", "visit", "position", "day", "chunk", "subrecord", "records", "count")
  numbers <- names(rows) %in% numbers | name == "table"
  rows[numbers] <- lapply(rows[numbers], type.convert, as.is = TRUE, na.strings = "")
  if (!is.null(rows$suppressed)) rows$suppressed <- rows$suppressed == "true"
  lists <- if (name != "table") c("codes", if (name == "codes") "members", if (name == "itemsets") "items")
  for (column in intersect(lists, names(rows))) rows[[column]] <- I(strsplit(rows[[column]], ";", fixed = TRUE))
  rows
}

lw_count <- function(release, codes) {
  if (!length(codes)) stop("name one code or more", call. = FALSE)
  count <- switch(release$method, disassociation = lw_of_chunks, constraints = lw_of_labels, censoring = ,
                  visits = , trajectories = , linked = lw_of_records,
                  stop("a release by ", release$method, " has no codes of patients; use its tables", call. = FALSE))
  count(release$tables, unique(as.character(codes)))
}
lw_refuse_unknown <- function(codes, known) for (code in setdiff(codes, known)) {
  stop("no code `", code, "` in this release: its count is unknown, not 0", call. = FALSE)
}
lw_having <- function(lists, codes) vapply(lists, function(held) all(codes %in% held), NA)

# Clusters first, then the joint clusters above them: `left` are the codes that records still want from shared chunks.
lw_of_chunks <- function(tables, codes) {
  lw_refuse_unknown(codes, unlist(tables$chunks$codes))
  if (length(codes) > 30) stop("counts are bounded for up to 30 codes", call. = FALSE)
  chunks <- tables$chunks[vapply(tables$chunks$codes, function(held) any(codes %in% held), NA), ]
  sizes <- setNames(tables$nodes$records, tables$nodes$node)
  parent <- setNames(tables$nodes$parent, tables$nodes$node)
  bits <- 2L^(seq_along(codes) - 1L)
  touched <- at <- unique(chunks$node)
  while (length(at <- setdiff(parent[at], c("", touched)))) touched <- c(touched, at)
  children <- split(touched, parent[touched])
  walk <- function(node) {
    n <- sizes[[node]]
    rows <- which(chunks$node == node)
    places <- split(rows, ifelse(chunks$kind[rows] == "item", paste("item", rows), chunks$chunk[rows]))
    parts <- lapply(places, function(rows) which(codes %in% unlist(chunks$codes[rows])))
    there <- seq_along(codes) %in% unlist(parts)
    support <- function(i, part) sum(lw_having(chunks$codes[places[[i]]], codes[part]))
    if (is.null(children[[node]])) {
      item <- vapply(places, function(rows) chunks$kind[rows[1]] == "item", NA)
      s <- vapply(which(!item), function(i) support(i, parts[[i]]), 0L)
      low <- max(0, n + sum(s - n) - (n - 1) * length(unlist(parts[item])))
      return(list(sums = data.frame(left = sum(bits[!there]), low, high = min(n, s)), covered = n * there))
    }
    below <- lapply(children[[node]], walk)
    rest <- n - sum(sizes[children[[node]]])  # records below which nothing is touched
    sums <- do.call(rbind, c(lapply(below, `[[`, "sums"), list(data.frame(left = sum(bits), low = rest, high = rest))))
    sums <- aggregate(cbind(low, high) ~ left, sums, sum)
    covered <- Reduce(`+`, lapply(below, `[[`, "covered"))
    for (i in seq_along(parts)) for (j in seq_len(nrow(sums))) {
      taken <- parts[[i]][bitwAnd(sums$left[j], bits[parts[[i]]]) > 0]
      if (!length(taken)) next
      s <- support(i, taken)
      sums$low[j] <- max(sums$low[j] + s - max(n - covered[taken]), 0)
      sums$high[j] <- min(sums$high[j], s)
      sums$left[j] <- sums$left[j] - sum(bits[taken])
    }
    list(sums = sums, covered = ifelse(there, n, covered))
  }
  found <- subset(do.call(rbind, lapply(touched[parent[touched] == ""], function(node) walk(node)$sums)), left == 0)
  c(low = sum(found$low), expected = NA, high = sum(found$high))
}

# A label such as (a,b,c) stands for some of its codes, each non-empty choice as likely as the others.
lw_of_labels <- function(tables, codes) {
  kept <- tables$codes[!tables$codes$suppressed, ]
  lw_refuse_unknown(codes, c(kept$code, unlist(kept$members)))
  names <- setdiff(names(tables$classes), c("class", "records"))
  key <- function(rows) do.call(paste, c(list(character(nrow(rows))), rows[names], sep = "\r"))
  classes <- if (length(names)) tables$classes else data.frame(class = "")
  count <- function(i) {
    lists <- tables$records$codes[key(tables$records) == key(classes)[i]]
    labels <- if (length(names)) kept[kept$class == classes$class[i], ] else kept
    inside <- vapply(codes, function(code) c(which(lw_having(labels$members, code)), NA)[1], 1L)
    asked <- ifelse(is.na(inside), match(codes, labels$code), inside)
    if (anyNA(asked)) return(c(low = 0, expected = 0, high = length(lists)))
    held <- sum(lw_having(lists, labels$code[asked]))
    sizes <- lengths(labels$members)[unique(na.omit(inside))]
    c(low = held * all(sizes == 1), expected = held * 2^-sum(!is.na(inside)) / prod(1 - 2^-sizes), high = held)
  }
  rowSums(vapply(seq_len(nrow(classes)), count, c(low = 0, expected = 0, high = 0)))
}

# A label a|b stands for a, b or both, and a node of the released hierarchy for what is below it.
lw_of_records <- function(tables, codes) {
  records <- if (is.null(tables$patients)) tables$records else tables$patients
  shown <- if (is.null(tables$trajectories)) tables$events else tables$trajectories
  if (is.null(shown)) {
    rows <- if (is.null(tables$visits)) records else tables$visits
    record <- rep(rows$record, lengths(rows$codes))
    shown <- unique(data.frame(record, code = as.character(unlist(rows$codes))))
  }
  labels <- unique(shown$code)
  parent <- setNames(as.character(tables$code_hierarchy$parent), tables$code_hierarchy$node)
  nodes <- as.character(names(parent))
  split_label <- function(label) unlist(strsplit(label, "|", fixed = TRUE))
  lw_refuse_unknown(codes, c(labels, nodes, split_label(c(labels, nodes))))
  path <- function(label) c(label, if (!unname(parent[label]) %in% c(NA, "")) path(unname(parent[label])))
  paths <- lapply(setdiff(nodes, parent), path)
  below <- split(rep(setdiff(nodes, parent), lengths(paths)), as.character(unlist(paths)))
  codes_of <- function(label) unique(split_label(if (is.null(below[[label]])) label else below[[label]]))
  chance <- function(label, asked) {
    if (asked %in% path(label)) return(1)
    inside <- codes_of(label) %in% codes_of(asked)
    if (all(inside) && is.null(below[[label]])) 1 else sum(inside) / (length(inside) + all(inside))
  }
  count <- function(asked) {
    has <- vapply(labels, chance, 0, asked)[match(shown$code, labels)]
    lacking <- tapply(1 - has, factor(shown$record, records$record), prod, default = 1)
    ifelse(records$record %in% shown$record[has == 1], 1, pmin(1 - as.numeric(lacking), 1 - 1e-9))
  }
  found <- Reduce(`*`, lapply(codes, count))
  c(low = sum(found == 1), expected = sum(found), high = nrow(records))
}
