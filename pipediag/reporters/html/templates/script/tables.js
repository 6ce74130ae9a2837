// A click on a column's name sorts by it: upwards, downwards, and as it was.
const UNITS = {
  "\u00b5s": 1e-3, ms: 1, s: 1e3, min: 6e4, h: 3.6e6,
  B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4,
};
const QUANTITY = /^(?:at most |<)?(-?[\d,]*\.?\d+(?:e-?\d+)?)\s*(\u00b5s|[A-Za-z]*)/;

const quantity = text => {
  const found = QUANTITY.exec(text);
  return found ? Number(found[1].replaceAll(",", "")) * (UNITS[found[2]] || 1) : NaN;
};
// A number stands before what is said below it.
const cellText = (row, column) => {
  const cell = row.cells[column];
  if (!cell || !cell.firstChild) return "";
  return (cell.classList.contains("num") ? cell.firstChild : cell).textContent.trim();
};

const compared = (one, other, column) => {
  const [a, b] = [cellText(one, column), cellText(other, column)];
  const [x, y] = [quantity(a), quantity(b)];
  if (Number.isNaN(x) || Number.isNaN(y)) {
    return Number.isNaN(x) - Number.isNaN(y) || a.localeCompare(b);
  }
  return x - y;
};

const sortable = table => {
  const body = table.tBodies[0];
  const heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
  if (table.tBodies.length !== 1 || body.rows.length < 3) return;
  const asWritten = [...body.rows];
  heads.forEach((head, column) => {
    const name = head.textContent.trim();
    if (!name || head.querySelector(".unseen")) return;
    const made = button(name, () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" }[
        head.getAttribute("aria-sort") || "none"];
      heads.forEach(other => other.removeAttribute("aria-sort"));
      if (next !== "none") head.setAttribute("aria-sort", next);
      const rows = [...asWritten];
      if (next !== "none") rows.sort((one, other) => compared(one, other, column));
      if (next === "descending") rows.reverse();
      body.append(...rows);
    });
    made.className = "sort";
    head.replaceChildren(made);
  });
};
findAll("main table").forEach(sortable);
