// Sorts a table of the page by the heading that is clicked; without it the table is in the order of the page.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const value = (row, at) => {
    const text = row.cells[at].textContent.trim();
    const number = parseFloat(text.replace(/,/g, ""));
    return Number.isNaN(number) ? (text === "–" ? -Infinity : text.toLowerCase()) : number;
  };
  const compare = (a, b) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);
  [...table.tHead.rows[0].cells].forEach((head, at) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.style.cssText = "all: unset; cursor: pointer; text-decoration: underline dotted";
    button.onfocus = () => { if (button.matches(":focus-visible")) button.style.outline = "2px solid"; };
    button.onblur = () => { button.style.outline = "none"; };
    head.append(button);
    button.onclick = () => {
      const up = head.getAttribute("aria-sort") === "descending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows].sort((a, b) => compare(value(a, at), value(b, at)) * (up ? 1 : -1));
      body.append(...rows);
    };
  });
}
