// Leaves the rows, findings and notes that have the words; all again where nothing is looked for.
const searchField = find("#find");
const found = find("#found");
const searched = "main tbody tr, main .finding, main .folded > li, main .plain > li, main .facts > div";

const search = () => {
  const words = searchField.value.toLowerCase().split(/\s+/).filter(Boolean);
  const items = findAll(searched).filter(item => !item.parentElement.closest(".finding"));
  let count = 0;
  items.forEach(item => {
    const text = item.textContent.toLowerCase();
    const has = words.every(word => text.includes(word));
    item.classList.toggle("off", !has);
    count += has;
    const details = words.length && has && item.closest("details");
    if (details && !details.open) {
      details.open = true;
      details.dataset.opened = "";
    }
  });
  if (!words.length) {
    findAll("details[data-opened]").forEach(details => {
      details.open = false;
      delete details.dataset.opened;
    });
  }
  found.textContent = words.length ? `${count} of ${items.length}` : "";
};
let waiting = 0;
on(searchField, "input", () => { clearTimeout(waiting); waiting = setTimeout(search, 120); });
on(searchField, "keydown", event => {
  if (event.key === "Escape") { searchField.value = ""; search(); }
});
