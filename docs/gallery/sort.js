// Sorts a table of the page by the heading that is clicked; without it the table is in the order of the page.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, at) => {
    const text = row.cells[at].textContent.trim();
    const number = parseFloat(text.replace(/,/g, ""));
    return Number.isNaN(number) ? text.toLowerCase() : number;
  };
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.style.cssText = "all: unset; cursor: pointer; text-decoration: underline dotted";
    button.onfocus = () => { if (button.matches(":focus-visible")) button.style.outline = "2px solid"; };
    button.onblur = () => { button.style.outline = "none"; };
    head.append(button);
    button.onclick = () => {
      const rows = [...body.rows].map((row) => [value(row, at), row]);
      const known = rows.filter(([key]) => key !== "–");
      const numbers = known.every(([key]) => typeof key === "number");
      // Numbers begin with the largest, names with the first; what is not known stays last.
      const first = numbers ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? (numbers ? "ascending" : "descending") : first;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      known.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
      body.append(...known.map(([, row]) => row), ...rows.filter(([key]) => key === "–").map(([, row]) => row));
    };
  });
}
