"use strict";
/* Makes the pages fast: keys, no reload between items, and answers that are sent again until they are kept.
   Everything also works without it. */
(() => {
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  let busy = false;
  let looked = 0;
  let since = performance.now();

  // Time: only while the page is seen.
  const restart = () => { looked = 0; since = performance.now(); };
  const seconds = () => ((looked + (document.hidden ? 0 : performance.now() - since)) / 1000).toFixed(1);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) looked += performance.now() - since;
    else since = performance.now();
  });

  const kept = (name, otherwise) => {
    try { return localStorage.getItem(name) ?? otherwise; } catch { return otherwise; }
  };
  const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* private window */ } };

  const say = (text) => { find("#live").textContent = text; };
  const trouble = (text) => {
    const place = find("#trouble");
    place.hidden = !text;
    place.textContent = text;
  };

  function show(html, address, push) {
    const page = new DOMParser().parseFromString(html, "text/html");
    if (!find("main", page)) { location.assign(address); return; }
    document.title = page.title;
    find("header.bar").replaceWith(find("header.bar", page));
    find("main").replaceWith(find("main", page));
    if (push) history.pushState(null, "", address);
    scrollTo(0, 0);
    prepare();
    const heading = find("#heading") ?? find("main");
    heading.focus({ preventScroll: true });
    const error = find("main .error")?.textContent ?? "";
    const told = [error, find("#said")?.textContent, heading.textContent, find(".progress span")?.textContent];
    say(told.filter(Boolean).map((text) => text.replace(/\.$/, "")).join(". "));
  }

  const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

  // An answer is sent until the server says what became of it. Its token makes sure that it counts once.
  async function send(form, button) {
    if (busy) return;
    busy = true;
    const data = new FormData(form, button);
    data.set("seconds", seconds());
    if (form.id === "skip" && find("#label")) data.set("comment", new FormData(find("#label")).get("comment") ?? "");
    const body = new URLSearchParams(data);
    form.setAttribute("aria-busy", "true");
    try {
      for (let pause = 500; ; pause = Math.min(pause * 2, 8000)) {
        try {
          const answer = await fetch(form.action, { method: "POST", body, credentials: "same-origin", cache: "no-store" });
          const html = await answer.text();
          if (answer.status < 500) {
            trouble("");
            show(html, answer.redirected ? answer.url : location.href, answer.redirected && answer.url !== location.href);
            return;
          }
        } catch { /* the server cannot be reached */ }
        trouble("Not saved yet: the server does not answer. It is tried again; leave this page open.");
        await wait(pause);
      }
    } finally {
      busy = false;
      form.removeAttribute("aria-busy");
    }
  }

  async function visit(address, push = true) {
    if (busy) return;
    busy = true;
    try {
      const answer = await fetch(address, { credentials: "same-origin", cache: "no-store" });
      show(await answer.text(), answer.url, push);
    } catch {
      location.assign(address);
    } finally {
      busy = false;
    }
  }

  // Choices: what stands alone clears the rest, and the rest clears it.
  function chosen(input) {
    if (!input.checked) return;
    const alone = "alone" in input.dataset;
    for (const other of all("#label [data-key], #label .choice input")) {
      if (other !== input && (alone || "alone" in other.dataset)) other.checked = false;
    }
  }

  function complete() {
    if (find("#label [data-alone]:checked")) return true;
    const groups = all("#label fieldset").filter((group) => !find("[data-alone]", group) || find("input:not([data-alone])", group));
    return groups.length === 1 && "exclusive" in groups[0].dataset && Boolean(find(":checked", groups[0]));
  }

  function choose(input) {
    input.checked = !input.checked;
    chosen(input);
    input.focus({ preventScroll: true });
    const text = input.closest("label").querySelector("span").firstChild.textContent.trim();
    say(`${text} ${input.checked ? "chosen" : "taken back"}`);
    if (input.checked && find("#quick")?.checked && complete()) find("#label").requestSubmit();
  }

  function openSkip() {
    const panel = find("#skipping");
    if (!panel) return;
    panel.open = true;
    (find("input[type=radio]", panel) ?? find("input[name=other]", panel)).focus();
  }

  function help() {
    const dialog = find("#keys");
    if (!dialog) { visit("/help"); return; }
    if (dialog.open) { dialog.close(); return; }
    dialog.showModal();
    find("button", dialog).focus();
  }

  const actions = {
    u: () => find("#undo")?.requestSubmit(),
    s: openSkip,
    c: () => find("#label textarea")?.focus(),
    g: () => {
      const panel = find("#guideline");
      if (!panel) return;
      panel.open = !panel.open;
      if (panel.open) find("summary", panel).focus();
    },
    h: help,
    "?": help,
    n: () => find("main a[rel=next]")?.click(),
    p: () => find("main a[rel=prev]")?.click(),
  };

  function leave(event) {
    const panel = event.target.closest("#skipping");
    if (panel) panel.open = false;
    if (panel || event.target.matches("textarea, input")) (find("#heading") ?? find("main")).focus();
  }

  function writing(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form) {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.repeat && event.key !== "Tab") return;
    const target = event.target;
    if (event.key === "Escape" && !find("dialog[open]")) { leave(event); return; }
    if (target.matches("textarea, select, input:not([type=radio]):not([type=checkbox])")) { writing(event); return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (find("dialog[open]")) {
      if (event.key === "h" || event.key === "?") { event.preventDefault(); help(); }
      return;
    }
    if (event.key === "Enter") {
      if (target.matches("a, button, summary")) return;
      const form = target.closest("#skip") ?? find("#label");
      if (form) { event.preventDefault(); form.requestSubmit(); }
      return;
    }
    if (kept("truerank-keys", "on") === "off") return;
    if (!target.matches("input[type=radio]")) {
      if (event.key === "ArrowRight") { event.preventDefault(); actions.n(); return; }
      if (event.key === "ArrowLeft") { event.preventDefault(); actions.p(); return; }
    }
    if (target.closest("#skipping") && /^[1-9]$/.test(event.key)) {
      const reason = find(`#skip [data-number="${event.key}"]`);
      if (reason) { event.preventDefault(); reason.checked = true; reason.focus(); return; }
    }
    const keyed = all("#label [data-key]");
    const input = keyed.find((one) => one.dataset.key === event.key) ?? keyed.find((one) => one.dataset.key === event.key.toLowerCase());
    if (input) { event.preventDefault(); if (!busy) choose(input); return; }
    const act = Object.hasOwn(actions, event.key) ? actions[event.key] : actions[event.key.toLowerCase()];
    if (event.key.length === 1 && act) { event.preventDefault(); if (!busy) act(); }
  });

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || !["label", "skip", "undo"].includes(form.id)) return;
    event.preventDefault();
    send(form, event.submitter);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (link.origin !== location.origin || link.hash) return;
    event.preventDefault();
    visit(link.href);
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("#label .choice input")) {
      chosen(event.target);
      if (event.target.checked && find("#quick")?.checked && complete()) find("#label").requestSubmit();
    }
    if (event.target.id === "quick") keep("truerank-quick", event.target.checked ? "on" : "off");
    if (event.target.id === "keys-on") keep("truerank-keys", event.target.checked ? "on" : "off");
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.id === "guideline") keep("truerank-guideline", event.target.open ? "on" : "off");
  }, true);
  addEventListener("popstate", () => visit(location.href, false));

  // The overview follows the work of others.
  setInterval(async () => {
    const main = find("main[data-live]");
    if (!main || document.hidden || busy) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = find("main[data-live]", page);
      if (fresh && main.isConnected && fresh.innerHTML !== main.innerHTML) main.replaceChildren(...fresh.childNodes);
    } catch { /* it is tried again */ }
  }, 5000);

  // A link with a name and a token takes its owner in. What stands behind the # is not sent with the address.
  function enter() {
    const form = find("form.enter");
    if (!form?.elements.token || !location.hash) return;
    const given = new URLSearchParams(location.hash.slice(1));
    history.replaceState(null, "", location.pathname);
    for (const name of ["name", "token"]) form.elements[name].value = given.get(name) ?? "";
    // Whoever has entered already, or comes from another site, decides whether to go on under that name.
    if ("straight" in form.dataset) form.requestSubmit();
  }

  function prepare() {
    restart();
    const quick = find("#quick");
    if (quick) { find(".quick").hidden = false; quick.checked = kept("truerank-quick", "off") === "on"; }
    const keys = find("#keys-on");
    if (keys) keys.checked = kept("truerank-keys", "on") === "on";
    const guideline = find("#guideline");
    if (guideline) guideline.open = kept("truerank-guideline", "off") === "on";
  }
  prepare();
  enter();
})();
