"use strict";
const notes = [...document.querySelectorAll("article")];
const byId = (id) => document.getElementById(id);
const checked = (note) => note.querySelector("input[type=checkbox]").checked;
const shown = () => notes.filter((note) => !note.hidden);
const has = {
  "": () => true,
  open: (note) => !checked(note),
  disagrees: (note) => note.querySelector(".flag"),
  EID: (note) => note.querySelector("mark.EID"),
  QID: (note) => note.querySelector("mark.QID"),
  HMI: (note) => note.querySelector("mark.HMI"),
  not: (note) => note.querySelector("mark.not"),
};

function filter() {
  const kind = byId("kind").value, words = byId("words").value.trim().toLowerCase();
  for (const note of notes) note.hidden = !(has[kind](note) && note.textContent.toLowerCase().includes(words));
  count();
}

function count() {
  byId("count").textContent = `${shown().length} shown, ${notes.filter(checked).length} of ${notes.length} checked`;
}

function go(step) {
  const bar = byId("bar").offsetHeight + 12; // where it ends once it is at the top
  const tops = shown().map((note) => [note, note.getBoundingClientRect().top - bar]);
  const found = step > 0 ? tops.find(([, top]) => top > 4) : tops.filter(([, top]) => top < -4).at(-1);
  if (!found) return;
  scrollBy(0, found[1]);
  found[0].focus({ preventScroll: true });
}

function save() {
  const record = {
    page: document.body.dataset.page, checked_by: byId("who").value.trim(), saved: new Date().toISOString(),
    notes: notes.map((note) => ({
      note: Number(note.dataset.note), checked: checked(note), remark: note.querySelector("input[type=text]").value.trim(),
    })),
  };
  if (!record.checked_by) { byId("who").focus(); byId("said").textContent = "Enter your name first."; return; }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(record, null, 2) + "\n"], { type: "application/json" }));
  link.download = "review-record.json";
  link.click();
  byId("said").textContent = "Saved. Keep review-record.json in custody, beside this page.";
}

byId("kind").addEventListener("change", filter);
byId("words").addEventListener("input", filter);
byId("next").addEventListener("click", () => go(1));
byId("previous").addEventListener("click", () => go(-1));
byId("save").addEventListener("click", save);
for (const note of notes) note.querySelector("input[type=checkbox]").addEventListener("change", count);
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "n") go(1);
  if (event.key === "p") go(-1);
});
count();
