// Copies a text, and nothing else: everything on these pages works without this file.
"use strict";
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy);
  navigator.clipboard.writeText(text.textContent).then(() => { button.textContent = "Copied"; });
});
for (const button of document.querySelectorAll("button[data-copy]")) button.hidden = !navigator.clipboard;
