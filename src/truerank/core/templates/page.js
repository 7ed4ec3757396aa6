"use strict";
(() => {
  const NARROW = matchMedia("(max-width: 44rem)").matches;
  // Rows of a listing that are shown at once, and of a table before it is folded.
  const ROWS = NARROW ? 10 : 25;
  const FOLDED = NARROW ? 8 : 12;
  // A table is folded where it has this many rows more, and filtered from this many on.
  const SPARED = 4;
  const FILTERED = 20;
  // As in truerank.text.words: an abbreviation with dots, or a word with apostrophes inside and the signs of C++ and C#.
  const WORD = /(?<![\p{L}\p{N}_])\p{L}(?:\.\p{L})+(?![\p{L}\p{N}_])\.?|[\p{L}\p{N}\p{M}]+(?:['’ʼ][\p{L}\p{N}\p{M}]+)*(?:\+\+|#(?![\p{L}\p{N}]))?/gu;
  const INTEGER = /^\d{1,15}$/;
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const count = new Intl.NumberFormat("en").format;

  const element = (tag, attributes, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };

  class Column {
    constructor(about) {
      Object.assign(this, about);
      this.size = (this.codes ?? this.values).length;
    }

    value(row) {
      return this.codes ? this.dictionary[this.codes[row]] : this.values[row];
    }

    show(row) {
      return this.kind === "number" ? this.value(row).toFixed(this.digits) : this.value(row);
    }

    // One number per row whose order is the order of the values; equal values share it.
    ranks() {
      if (!this.ranked) {
        if (this.kind === "number") this.ranked = Float64Array.from(this.values);
        else if (this.codes) {
          const ranks = rankTexts(this.dictionary);
          this.ranked = Float64Array.from(this.codes, (code) => ranks[code]);
        } else this.ranked = rankTexts(this.values);
      }
      return this.ranked;
    }

    // Which rows a filter keeps: a function of the row, or null for all.
    filtered(wanted) {
      if (wanted === "") return null;
      if (this.filter === "above") {
        const bound = Number(wanted);
        return Number.isNaN(bound) ? null : (row) => this.values[row] > bound;
      }
      const folded = wanted.toLowerCase();
      const distinct = this.dictionary ?? this.values;
      const exact = distinct.some((value) => value.toLowerCase() === folded);
      const fits = exact ? (value) => value.toLowerCase() === folded : (value) => value.toLowerCase().startsWith(folded);
      if (!this.codes) return (row) => fits(this.values[row]);
      const kept = this.dictionary.map(fits);
      return (row) => kept[this.codes[row]];
    }
  }

  const rankTexts = (texts) => {
    if (texts.every((text) => INTEGER.test(text))) return Float64Array.from(texts, Number);
    const order = Uint32Array.from(texts, (_, index) => index).sort((a, b) => collator.compare(texts[a], texts[b]));
    const ranks = new Float64Array(texts.length);
    let rank = 0;
    order.forEach((index, position) => {
      if (position > 0 && collator.compare(texts[order[position - 1]], texts[index]) !== 0) rank = position;
      ranks[index] = rank;
    });
    return ranks;
  };

  const form = (word) => word.replace(/['’ʼ]s$/, "").normalize("NFC").toLowerCase().replace(/['’ʼ.]/g, "");

  const spans = (text) => Array.from(text.matchAll(WORD), (match) => ({ form: form(match[0]), start: match.index, end: match.index + match[0].length }));

  // As in truerank.text.differences: what each word of one text is to the other text.
  const statuses = (own, other, stem) => {
    const forms = new Set(other.map((span) => span.form));
    const stems = new Set(other.map((span) => stem(span.form)));
    const joined = new Set(other.slice(1).map((right, at) => other[at].form + stem(right.form)));
    const found = own.map((span) => {
      if (forms.has(span.form)) return "same";
      return stems.has(stem(span.form)) || joined.has(stem(span.form)) ? "inflected" : "other";
    });
    for (let at = 0; at + 1 < own.length; at += 1) {
      if (!stems.has(own[at].form + stem(own[at + 1].form))) continue;
      for (const place of [at, at + 1]) if (found[place] === "other") found[place] = "inflected";
    }
    return found;
  };

  // A text as nodes in which its differences from another text are marked.
  const marked = (text, own, other, stem) => {
    const nodes = [];
    let end = 0;
    statuses(own, other, stem).forEach((status, at) => {
      if (status === "same") return;
      nodes.push(text.slice(end, own[at].start), element("mark", { class: status }, text.slice(own[at].start, own[at].end)));
      end = own[at].end;
    });
    nodes.push(text.slice(end));
    return nodes;
  };

  class Listing {
    constructor(root) {
      this.root = root;
      const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
      Object.assign(this, data);
      const stems = new Map(Object.entries(data.stems));
      this.stem = (word) => stems.get(word) ?? word;
      this.columns = data.columns.map((about) => new Column(about));
      this.byKey = new Map(this.columns.map((column) => [column.key, column]));
      this.form = root.querySelector("form");
      this.chooser = root.querySelector("[data-sort]");
      this.status = root.querySelector(".status");
      this.body = root.querySelector("tbody");
      this.pager = root.querySelector(".pager");
      this.chunk = this.pager.querySelector("[data-rows]");
      this.length = ROWS;
      this.inputs = new Map([...this.form.querySelectorAll("[name]")].map((input) => [input.name, input]));
      this.standard = new Map([...this.inputs.keys()].map((key) => [key, this.byKey.get(key)?.start ?? ""]));
      this.head();
      this.listen();
      this.form.hidden = false;
      // A telephone has no room for filters that nobody set.
      this.form.querySelector(".filters").open = !NARROW || this.addressed();
      this.read();
      this.update();
      if (this.addressed()) root.scrollIntoView();
    }

    head() {
      this.headings = new Map();
      for (const heading of this.root.querySelectorAll("th[data-key]")) {
        const button = element("button", { type: "button" }, heading.textContent);
        heading.replaceChildren(button);
        this.headings.set(heading.dataset.key, { heading, button });
        button.addEventListener("click", () => this.sortBy(this.turned(heading.dataset.key)));
      }
    }

    listen() {
      let waiting = 0;
      const changed = () => {
        clearTimeout(waiting);
        waiting = setTimeout(() => { this.page = 0; this.update(); this.write(); }, 120);
      };
      this.form.addEventListener("input", (event) => { if (event.target !== this.chooser) changed(); });
      this.chooser.addEventListener("change", () => this.sortBy(this.chooser.value));
      this.chunk.addEventListener("change", () => {
        const first = this.page * this.length;
        this.length = Number(this.chunk.value);
        this.page = Math.floor(first / this.length);
        this.update();
        this.write();
      });
      this.form.addEventListener("submit", (event) => event.preventDefault());
      const actions = {
        reset: () => { this.set(this.standard, this.sort, 0); this.update(); this.write(); },
        save: () => this.save(),
        previous: () => this.turn(-1),
        next: () => this.turn(1),
      };
      for (const button of this.root.querySelectorAll("button[data-action]"))
        button.addEventListener("click", actions[button.dataset.action]);
      window.addEventListener("hashchange", () => { if (this.addressed()) { this.read(); this.update(); this.root.scrollIntoView(); } });
      window.addEventListener("beforeprint", () => this.render(0, this.printed, true));
      window.addEventListener("afterprint", () => this.render(this.page * this.length, this.length, false));
    }

    // The state of the list is in the address, so that a view can be kept and passed on.
    addressed() {
      return location.hash.startsWith(`#${this.name}&`);
    }

    read() {
      const given = new URLSearchParams(this.addressed() ? location.hash.slice(this.name.length + 2) : "");
      const values = new Map([...this.standard].map(([key, value]) => [key, given.get(key) ?? value]));
      const sort = given.get("sort") ?? this.sort;
      const first = Math.max(1, Number.parseInt(given.get("from") ?? "1", 10) || 1) - 1;
      this.set(values, this.byKey.has(sort.replace(/^-/, "")) ? sort : this.sort, Math.floor(first / this.length));
    }

    set(values, sort, page) {
      for (const [key, input] of this.inputs) input.value = values.get(key);
      this.sorted = sort;
      this.page = page;
    }

    write() {
      const state = new URLSearchParams();
      for (const [key, input] of this.inputs) if (input.value !== this.standard.get(key)) state.set(key, input.value);
      if (this.sorted !== this.sort) state.set("sort", this.sorted);
      // Not the page: a telephone has shorter ones.
      if (this.page > 0) state.set("from", String(this.page * this.length + 1));
      const hash = state.size > 0 ? `#${this.name}&${state}` : `#${this.name}`;
      // Some browsers refuse when this happens very often; the list itself is unharmed.
      try { history.replaceState(null, "", hash); } catch { /* the address stays as it was */ }
    }

    // What a click on a heading sorts by: numbers from the top first, and the other way round the second time.
    turned(key) {
      const first = this.byKey.get(key).kind === "number" ? `-${key}` : key;
      const second = first.startsWith("-") ? key : `-${key}`;
      return this.sorted === first ? second : first;
    }

    sortBy(sort) {
      this.sorted = sort;
      this.page = 0;
      this.update();
      this.write();
    }

    turn(step) {
      const page = this.page + step;
      if (page < 0 || page * this.length >= this.order.length) return;
      this.page = page;
      this.render(page * this.length, this.length, false);
      this.write();
      this.root.querySelector(".rows").scrollIntoView({ block: "start" });
    }

    update() {
      this.order = this.select();
      if (this.page * this.length >= this.order.length) this.page = 0;
      this.render(this.page * this.length, this.length, false);
    }

    select() {
      const tests = [];
      for (const [key, input] of this.inputs) {
        const kept = key === "q" ? this.search(input.value) : this.byKey.get(key).filtered(input.value.trim());
        if (kept) tests.push(kept);
      }
      const order = [];
      for (let row = 0; row < this.rows; row += 1) if (tests.every((test) => test(row))) order.push(row);
      if (this.sorted !== "") {
        const ranks = this.byKey.get(this.sorted.replace(/^-/, "")).ranks();
        const sign = this.sorted.startsWith("-") ? -1 : 1;
        order.sort((a, b) => sign * (ranks[a] - ranks[b]) || a - b);
      }
      return order;
    }

    search(text) {
      const sought = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
      if (sought.length === 0) return null;
      if (!this.searchable) {
        const columns = this.columns.filter((column) => column.searched);
        this.searchable = Array.from({ length: this.rows }, (_, row) =>
          columns.map((column) => column.value(row)).join("\n").toLowerCase());
      }
      return (row) => sought.every((word) => this.searchable[row].includes(word));
    }

    render(start, length, printing) {
      const rows = this.order.slice(start, start + length);
      this.body.replaceChildren(...rows.map((row) => this.row(row)));
      this.say(start, rows.length, printing);
      this.chooser.value = this.sorted;
      for (const [key, { heading, button }] of this.headings) {
        // Headings are repeated on every sheet, but not the buttons in them; a button that moves loses the focus.
        if (printing) heading.replaceChildren(button.textContent);
        else if (!button.isConnected) heading.replaceChildren(button);
        const direction = { [key]: "ascending", [`-${key}`]: "descending" }[this.sorted];
        if (direction) heading.setAttribute("aria-sort", direction);
        else heading.removeAttribute("aria-sort");
      }
      const pages = Math.max(1, Math.ceil(this.order.length / this.length));
      this.pager.hidden = this.order.length <= Number(this.chunk.options[0].value);
      this.chunk.value = String(this.length);
      this.pager.querySelector("span").textContent = `Page ${count(this.page + 1)} of ${count(pages)}`;
      this.pager.querySelector("[data-action=previous]").setAttribute("aria-disabled", String(this.page === 0));
      this.pager.querySelector("[data-action=next]").setAttribute("aria-disabled", String(this.page + 1 === pages));
    }

    say(start, length, printing) {
      const found = this.order.length;
      const noun = this.nouns[found === 1 ? 0 : 1];
      const all = found === this.rows ? `${count(found)} ${noun}` : `${count(found)} of ${count(this.rows)} ${this.nouns[1]}`;
      if (printing && length < found) {
        const where = this.whole ? ` The whole list stands in ${this.whole}.` : "";
        this.status.textContent = `${all}; the first ${count(length)} are printed.${where}`;
      } else if (length < found) {
        this.status.textContent = `${all}; ${count(start + 1)} to ${count(start + length)} shown.`;
      } else this.status.textContent = found === 0 ? `No ${this.nouns[0]} fits the filters.` : `${all}.`;
    }

    row(row) {
      const made = element("tr", { role: "row" });
      const texts = (this.compared ?? []).map((key) => this.byKey.get(key).value(row));
      const cut = texts.map(spans);
      for (const column of this.columns) {
        if (!column.shown) continue;
        const side = this.compared ? this.compared.indexOf(column.key) : -1;
        const content = side < 0 ? [column.show(row)] : marked(texts[side], cut[side], cut[1 - side], this.stem);
        const attributes = { class: column.classes, "data-title": column.title };
        const cell = made.childElementCount === 0
          ? element("th", { scope: "row", role: "rowheader", ...attributes })
          : element("td", { role: "cell", ...attributes });
        cell.append(element("bdi", {}, ...content));
        made.append(cell);
      }
      return made;
    }

    save() {
      const columns = this.columns.filter((column) => column.exported);
      // A spreadsheet would run a text that begins like a formula; a query that people typed may.
      const clean = (value) => {
        const text = String(value).replace(/[\t\r\n]+/g, " ");
        return typeof value === "string" && /^[=+\-@]/.test(text) ? `'${text}` : text;
      };
      const lines = [columns.map((column) => column.key).join("\t")];
      for (const row of this.order) lines.push(columns.map((column) => clean(column.value(row))).join("\t"));
      save(`${this.name}.tsv`, new Blob([lines.join("\n"), "\n"], { type: "text/tab-separated-values" }));
    }
  }

  // A long table: its first rows, a button for the others, and a filter.
  class Folded {
    constructor(root) {
      this.rows = [...root.querySelectorAll("tbody tr")];
      if (this.rows.length <= FOLDED + SPARED) return;
      this.open = false;
      this.button = element("button", { type: "button", "aria-expanded": "false" });
      this.button.addEventListener("click", () => { this.open = !this.open; this.show(); });
      this.controls = element("div", { class: "fold" }, this.button);
      if (this.rows.length >= FILTERED) {
        const label = root.getAttribute("aria-label");
        this.input = element("input", { type: "search", autocomplete: "off", spellcheck: "false", "aria-label": `Filter: ${label}`, placeholder: "Filter rows" });
        this.input.addEventListener("input", () => this.show());
        this.status = element("span", { role: "status" });
        this.controls.append(this.input, this.status);
      }
      root.append(this.controls);
      window.addEventListener("beforeprint", () => { for (const row of this.rows) row.hidden = false; });
      window.addEventListener("afterprint", () => this.show());
      this.show();
    }

    show() {
      const sought = (this.input?.value ?? "").toLowerCase().split(/\s+/).filter((word) => word !== "");
      let kept = 0;
      this.rows.forEach((row, at) => {
        const text = sought.length > 0 ? [...row.cells].map((cell) => cell.textContent).join("\n").toLowerCase() : "";
        row.hidden = sought.length > 0 ? !sought.every((word) => text.includes(word)) : !this.open && at >= FOLDED;
        if (!row.hidden) kept += 1;
      });
      this.button.hidden = sought.length > 0;
      this.button.setAttribute("aria-expanded", String(this.open));
      this.button.textContent = this.open ? `Show the first ${FOLDED} rows` : `Show all ${count(this.rows.length)} rows`;
      if (this.status) this.status.textContent = sought.length > 0 ? `${count(kept)} of ${count(this.rows.length)} rows` : "";
    }
  }

  const save = (name, blob) => {
    const address = URL.createObjectURL(blob);
    element("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };
  const action = (label, act) => {
    const button = element("button", { type: "button", class: "act" });
    button.textContent = label;
    button.addEventListener("click", () => act(button));
    return button;
  };

  // The sentence of the claim with its interval, for a message or a paper.
  const claim = document.querySelector("header .lead");
  if (claim && navigator.clipboard) {
    const title = document.querySelector("h1").textContent;
    claim.append(" ", action("Copy", async (button) => {
      await navigator.clipboard.writeText(`${title} (${claim.firstChild.textContent.trim().replace(/\.$/, "")}).`);
      button.textContent = "Copied";
    }));
  }

  // A figure as SVG, with the colours that it has here, or as PNG at twice its size.
  const drawn = (svg) => {
    const copy = svg.cloneNode(true);
    const style = getComputedStyle(svg);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.style.color = style.color;
    copy.style.background = getComputedStyle(document.body).backgroundColor;
    return new XMLSerializer().serializeToString(copy);
  };
  document.querySelectorAll("figure svg").forEach((svg, at) => {
    const name = svg.closest("section")?.id ?? "figure";
    const caption = svg.closest("figure").querySelector("figcaption");
    if (!caption) return;
    caption.append(" ", action("SVG", () => save(`${name}-${at + 1}.svg`, new Blob([drawn(svg)], { type: "image/svg+xml" }))));
    caption.append(" ", action("PNG", () => {
      const image = new Image();
      const size = svg.getBoundingClientRect();
      image.addEventListener("load", () => {
        const canvas = element("canvas", { width: String(Math.ceil(2 * size.width)), height: String(Math.ceil(2 * size.height)) });
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => save(`${name}-${at + 1}.png`, blob));
      });
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawn(svg))}`;
    }));
  });

  for (const root of document.querySelectorAll("[data-listing]")) new Listing(root);
  for (const root of document.querySelectorAll(".table")) new Folded(root);

  const closed = [];
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details:not([open])")) { details.open = true; closed.push(details); }
  });
  window.addEventListener("afterprint", () => { for (const details of closed.splice(0)) details.open = false; });
})();
