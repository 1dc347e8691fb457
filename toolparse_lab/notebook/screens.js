// The front end of every screen. The HTML comes from Python, escaped there: nothing here words a
// number, builds a table or talks to a network. It moves the focus, filters, edits and asks.

const WAIT = { edit: 60, filter: 150, stream: 30 }; // milliseconds behind the last key
const LONG = 256 * 1024; // characters from which on a plain field takes the text
const NO_ANSWER = 8000; // milliseconds after which nobody is there

function valuesOf(form) {
  const values = {};
  for (const field of form.elements) {
    if (field.name) values[field.name] = field.type === "checkbox" ? field.checked : field.value;
  }
  return values;
}

function isTyping(target) {
  return Boolean(target.closest?.("textarea, select, input:not([type=checkbox]):not([type=range]), [contenteditable]"));
}

class Screen {
  /** send: takes a message; null where nobody answers. place: keeps the place in the page's address. tell: hears of a stage and a pin. */
  constructor(root, { html, send = null, place = null, tell = () => {}, stage = "raw" }) {
    Object.assign(this, { root, send, place, tell, stage, pinned: "", seq: 0, edits: 0, timers: {}, opened: "" });
    root.innerHTML = html;
    this.enliven();
    const heard = { click: this.onClick, change: this.onChange, input: this.onInput, pointerover: this.onPoint, focusin: this.onPoint, pointerleave: () => this.light(null) };
    for (const [name, act] of Object.entries(heard)) root.addEventListener(name, (event) => act.call(this, event));
    root.addEventListener("toggle", (event) => this.onToggle(event), true);
    // A page of its own hears its keys from wherever one is; a notebook has keys of its own.
    this.keySource = place ? document : root;
    this.hearKey = (event) => this.onKey(event);
    this.keySource.addEventListener("keydown", this.hearKey);
  }

  gone() {
    this.keySource.removeEventListener("keydown", this.hearKey);
    for (const timer of Object.values(this.timers)) clearTimeout(timer);
  }

  one(selector) {
    return this.root.querySelector(selector);
  }

  // asking, and what comes back

  ask(message) {
    if (!this.send) return;
    this.seq += 1;
    if (message.kind === "edit") this.edits = this.seq;
    this.send({ ...message, seq: this.seq });
    clearTimeout(this.timers.alone);
    this.timers.alone = setTimeout(() => this.complain("Nobody answers. What you see stays readable; run the cell again to go on."), NO_ANSWER);
  }

  later(name, milliseconds, act) {
    clearTimeout(this.timers[name]);
    this.timers[name] = setTimeout(act, milliseconds);
  }

  hear({ html = "", bench, place, title, said, error, opened, focus, seq = 0 }) {
    if (seq >= this.seq) clearTimeout(this.timers.alone);
    if (error !== undefined) this.complain(error);
    // A reading of a text that has changed again comes too late.
    if (bench && seq < this.edits) return;
    if (opened !== undefined) {
      this.one(".app, .screen")?.classList.toggle("opened", opened !== "");
      if (this.place) this.place.write(place, title, opened !== this.opened);
      this.opened = opened;
    }
    if (html) this.patch(html);
    const replay = this.one("[data-last]");
    if (replay) {
      const slider = this.one('[name="step"]');
      // Who moves it is ahead of the answers.
      if (slider.max !== replay.dataset.last) slider.value = slider.max = replay.dataset.last;
      slider.setAttribute("aria-valuetext", replay.querySelector('[role="status"]').textContent);
    }
    if (bench) this.paint(bench.marks, bench.raw);
    const live = this.one('[data-part="said"]');
    if (said && live) live.textContent = said;
    if (opened !== undefined) this.choose(opened);
    if (focus) this.toField(this.one(focus));
  }

  /** Go to a field, and to the stage that has it. */
  toField(field) {
    if (field?.matches(".editor")) this.toStage(field.closest(".pv"), "raw");
    field?.focus({ preventScroll: true });
  }

  complain(words) {
    const box = this.one('[data-part="detail"]') || this.root.firstElementChild;
    let alert = box.querySelector(":scope > .alert.err");
    if (!alert) {
      alert = document.createElement("p");
      alert.className = "alert err";
      alert.setAttribute("role", "alert");
      box.prepend(alert);
    }
    alert.textContent = words;
  }

  /** Put the parts in the place of those of the same name; a field that one types in keeps its text. */
  patch(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    const active = this.root.getRootNode().activeElement;
    for (const fresh of [...template.content.children]) {
      const old = this.one(`[data-part="${fresh.dataset.part}"]`);
      if (!old) continue;
      const held = old.contains(active) ? active : null;
      const { scrollTop } = old;
      old.replaceWith(fresh);
      if (fresh.classList.contains("list")) fresh.scrollTop = scrollTop;
      if (!held) continue;
      const same = ["name", "data-key", "data-ask", "data-tab"].map((name) => held.getAttribute(name) !== null && `[${name}="${CSS.escape(held.getAttribute(name))}"]`).find(Boolean);
      const again = held === old ? fresh : same ? fresh.querySelector(same) : null;
      if (again && "selectionStart" in held && held.type !== "checkbox") {
        again.value = held.value;
        again.focus({ preventScroll: true });
        again.setSelectionRange?.(held.selectionStart, held.selectionEnd);
      } else (again || (fresh.tabIndex >= 0 ? fresh : null))?.focus({ preventScroll: true });
    }
    this.enliven();
  }

  /** Stages become tabs, the text of the workbench can be edited, and what is asked for later is asked for. */
  enliven() {
    for (const view of this.root.querySelectorAll(".pv")) this.toStage(view, this.stage, false);
    const bench = this.one("[data-bench]");
    if (bench && !bench.dataset.ready) {
      bench.dataset.ready = "1";
      this.edits = 0;
      this.paint(JSON.parse(bench.dataset.marks), bench.dataset.raw);
    }
    this.later("load", 40, () => {
      for (const element of this.root.querySelectorAll("[data-load]")) {
        const message = JSON.parse(element.dataset.load);
        delete element.dataset.load;
        this.ask(message);
      }
    });
  }

  // the text of the workbench

  get editor() {
    return this.one(".editor");
  }

  get text() {
    return this.editor.value ?? this.editor.textContent;
  }

  /** Set the text, where there is one, and draw the marks over it: [kind, start, end] each. */
  paint(marks, raw) {
    let { editor } = this;
    if (!editor) return;
    const marked = window.CSS?.highlights && editor.contentEditable === "plaintext-only" && (raw ?? "").length < LONG;
    if (!marked && editor.value === undefined) {
      const field = document.createElement("textarea");
      field.className = editor.className;
      field.rows = 12;
      field.spellcheck = false;
      field.setAttribute("aria-label", editor.getAttribute("aria-label"));
      field.dataset.key = "e";
      editor.replaceWith(field);
      editor = field;
    }
    if (raw !== undefined && this.text !== raw) {
      if (editor.value === undefined) editor.textContent = raw;
      else editor.value = raw;
    }
    if (editor.value !== undefined || !window.CSS?.highlights) return;
    for (const name of [...CSS.highlights.keys()]) if (name.startsWith("tpx-")) CSS.highlights.delete(name);
    const nodes = [];
    const walker = document.createTreeWalker(editor, NodeFilter.SHOW_TEXT);
    for (let at = 0; walker.nextNode(); at += walker.currentNode.length) nodes.push([walker.currentNode, at]);
    if (!nodes.length) return;
    const spot = (place) => {
      const [node, at] = nodes.findLast(([, start]) => start <= place) ?? nodes[0];
      return [node, Math.min(place - at, node.length)];
    };
    for (const [kind, start, end] of marks) {
      const range = new Range();
      range.setStart(...spot(start));
      range.setEnd(...spot(end));
      if (!CSS.highlights.has(`tpx-${kind}`)) CSS.highlights.set(`tpx-${kind}`, new Highlight());
      CSS.highlights.get(`tpx-${kind}`).add(range);
    }
  }

  // stages, links and pins of a parse view

  toStage(view, name, tell = true) {
    view.classList.add("live");
    const tabs = [...view.querySelectorAll("[data-tab]")];
    const chosen = tabs.some((tab) => tab.dataset.tab === name) ? name : "raw";
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab.dataset.tab === chosen));
      tab.tabIndex = tab.dataset.tab === chosen ? 0 : -1;
      tab.parentElement.hidden = false;
    }
    for (const panel of view.querySelectorAll("details.stage")) panel.open = panel.dataset.stage === chosen;
    if (!tell) return;
    this.stage = name;
    this.tell("stage", name);
  }

  /** Light everything that shares a number with an element; a container takes what is in it along. */
  light(element) {
    for (const lit of this.root.querySelectorAll(".lit")) lit.classList.remove("lit");
    const source = element ?? this.one(".pinned");
    const view = source?.closest(".pv");
    if (!view) return;
    const numbers = new Set(source.dataset.n.split(" "));
    for (let row = source.nextElementSibling; source.role === "treeitem" && row && Number(row.ariaLevel) > Number(source.ariaLevel) && source.ariaLevel !== "1"; row = row.nextElementSibling) {
      for (const number of row.dataset.n.split(" ")) numbers.add(number);
    }
    for (const number of numbers) {
      for (const other of view.querySelectorAll(`[data-n~="${number}"]`)) other.classList.add("lit");
    }
    for (const pane of view.querySelectorAll(".raw, .tree, .notes")) {
      const first = pane.querySelector(".lit");
      if (first && !pane.contains(source)) this.reveal(pane, first);
    }
  }

  /** Scroll a pane, and only the pane, until an element in it can be seen. */
  reveal(pane, element) {
    const [outer, inner] = [pane.getBoundingClientRect(), element.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) pane.scrollTop += inner.top - outer.top - outer.height / 3;
  }

  pin(element) {
    const was = element.classList.contains("pinned");
    for (const pinned of this.root.querySelectorAll(".pinned")) pinned.classList.remove("pinned");
    if (!was) element.classList.add("pinned");
    this.light(was ? null : element);
    const number = element.dataset.n.split(" ")[0];
    const row = element.closest(".pv").querySelector(`.tree [data-n="${number}"], [data-pin][data-n~="${number}"]`);
    this.tell("pinned", was ? "" : row?.dataset.pin ?? row?.dataset.p ?? "");
  }

  /** Follow the kernel's `pinned`. */
  pinPath(path) {
    for (const pinned of this.root.querySelectorAll(".pinned")) pinned.classList.remove("pinned");
    if (path) this.one(`[data-p="${CSS.escape(String(path))}"], [data-pin="${CSS.escape(String(path))}"]`)?.classList.add("pinned");
    this.light(null);
  }

  // the list

  get items() {
    return [...this.root.querySelectorAll(".item[data-trial]")];
  }

  /** Choose the line of an answer, or none. */
  choose(trial) {
    let chosen = null;
    for (const item of this.items) {
      const isIt = trial !== "" && item.dataset.trial === trial;
      item.setAttribute("aria-selected", String(isIt));
      if (isIt) chosen = item;
    }
    const list = this.one(".list");
    if (!list) return;
    if (chosen) {
      list.setAttribute("aria-activedescendant", chosen.id);
      this.reveal(list, chosen);
    } else list.removeAttribute("aria-activedescendant");
  }

  move(step) {
    const { items } = this;
    const at = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
    const item = items[Math.max(0, Math.min(items.length - 1, at < 0 ? 0 : at + step))];
    if (!item) return;
    this.choose(item.dataset.trial);
    if (this.opened) item.click();
  }

  // events

  onClick(event) {
    const target = event.target.closest("[data-tab], [data-copy], [data-link], [data-help], [data-ask], [data-n]");
    if (!target || !this.root.contains(target)) return;
    const { tab, copy, link, help, ask, n } = target.dataset;
    if (tab) this.toStage(target.closest(".pv"), tab);
    else if (copy !== undefined) this.copy(copy, target);
    else if (link !== undefined) this.copy(location.href, target);
    else if (help !== undefined) {
      const dialog = this.one("dialog");
      if (dialog.open) dialog.close();
      else dialog.showModal();
    } else if (ask) {
      const form = target.closest("form[data-form]");
      this.ask({ ...JSON.parse(ask), ...(form ? { values: valuesOf(form) } : {}) });
    } else if (n) this.pin(target);
  }

  async copy(text, button) {
    const said = this.one('[data-part="said"]');
    try {
      await navigator.clipboard.writeText(text);
      if (said) said.textContent = "copied";
      button.classList.add("lit");
      setTimeout(() => button.classList.remove("lit"), 600);
    } catch {
      // Without a clipboard the text is shown, to be copied by hand.
      const field = document.createElement("textarea");
      field.readOnly = true;
      field.value = text;
      field.setAttribute("aria-label", "to copy");
      button.parentElement.after(field);
      field.select();
    }
  }

  send_form(form, field) {
    this.ask({ ...JSON.parse(form.dataset.change), values: valuesOf(form), changed: [field.name] });
  }

  onChange(event) {
    const form = event.target.closest("form[data-change]");
    if (form && !isTyping(event.target)) this.send_form(form, event.target);
    else if (form && event.target.matches("select, [type=number]")) this.send_form(form, event.target);
  }

  onInput(event) {
    const { target } = event;
    if (target.closest(".editor")) {
      this.later("edit", WAIT.edit, () => this.ask({ kind: "edit", raw: this.text }));
      return;
    }
    const form = target.closest("form[data-change]");
    if (!form || !target.matches("[type=search], [type=range], textarea")) return;
    const wait = target.type === "range" ? WAIT.stream : WAIT.filter;
    this.later("form", wait, () => this.send_form(form, target));
  }

  onPoint(event) {
    const target = event.target.closest?.("[data-n]");
    this.light(target && this.root.contains(target) ? target : null);
  }

  onToggle(event) {
    const { open, dataset } = event.target;
    if (open && dataset.open) this.ask({ ...JSON.parse(dataset.open), values: valuesOf(event.target.querySelector("form") ?? { elements: [] }) });
  }

  onSubmit(event) {
    event.preventDefault();
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.one("dialog")?.open) return;
    const { target, key } = event;
    const inside = this.root.contains(target);
    if (inside && isTyping(target) && key !== "Escape") {
      if (key === "Enter" && target.matches("input")) event.preventDefault();
      event.stopPropagation();
      return;
    }
    // A slider has arrows of its own.
    if (inside && target.type === "range" && /^(Arrow|Home|End|Page)/.test(key)) {
      event.stopPropagation();
      return;
    }
    if (!this.press(key, target)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Do what a key stands for; false for one that stands for nothing here. */
  press(key, target) {
    if (key === "Escape" && isTyping(target)) {
      target.blur();
      (this.one(".list") || this.one("[role=tab][aria-selected=true]"))?.focus({ preventScroll: true });
      return true;
    }
    if (key === "Escape" && this.one(".pinned")) {
      this.pin(this.one(".pinned"));
      return true;
    }
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[key];
    const row = target.closest?.('[role="treeitem"], li[data-n], [role="tab"], .cell');
    if (row && this.root.contains(row) && (step || key === "Enter" || key === " ")) {
      if (row.matches('[role="tab"], .cell') && !step) return false;
      if (!step) this.pin(row);
      else {
        const among = row.matches(".cell") ? ".cell" : row.matches('[role="tab"]') ? "[data-tab]" : '.tree [data-n], .notes [data-n]';
        const rows = [...(row.closest(".pv") ?? this.root).querySelectorAll(among)];
        const next = rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(row) + step))];
        next.focus({ preventScroll: true });
        if (next.dataset.tab) next.click();
        const pane = next.closest(".tree, .notes");
        if (pane) this.reveal(pane, next);
      }
      return true;
    }
    if (target.closest?.(".tree, .notes, .raw") && step && !this.items.length) {
      this.one(".tree [data-n]")?.focus({ preventScroll: true });
      return true;
    }
    if (this.items.length && (key === "ArrowDown" || key === "ArrowUp")) {
      this.move(step);
      return true;
    }
    if (key === "Enter" && !target.closest?.("button, a, summary")) {
      const item = this.one('.item[aria-selected="true"]');
      item?.click();
      return Boolean(item);
    }
    // A narrow page hides the line of keys, which still holds for a keyboard.
    const elements = [...this.root.querySelectorAll(`[data-key~="${CSS.escape(key)}"]`)];
    const element = elements.find((one) => one.checkVisibility()) ?? elements.find((one) => one.closest(".foot, .pv, .tools"));
    if (!element) return false;
    // An answer that is open takes the place of the search.
    if (element.closest(".opened .tools")) this.ask({ kind: "close", focus: `[data-key="${CSS.escape(key)}"]` });
    else if (element.matches("input, textarea, .editor")) this.toField(element);
    else element.click();
    return true;
  }
}

/** Make a button switch between light and dark, on a page of its own; the choice is kept. */
export function keepTheme(button) {
  const page = document.documentElement;
  const name = "toolparse-theme";
  try {
    if ((page.dataset.theme ?? "auto") === "auto") page.dataset.theme = localStorage.getItem(name) ?? "auto";
  } catch {
    // A page may be kept from keeping anything.
  }
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const { theme } = page.dataset;
    const dark = theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    page.dataset.theme = dark ? "light" : "dark";
    // The report has no script: the server reads the choice for it.
    document.cookie = `${name}=${page.dataset.theme}; path=/; max-age=31536000; SameSite=Strict`;
    try {
      localStorage.setItem(name, page.dataset.theme);
    } catch {
      // as above
    }
  });
}

export function mount(root, options) {
  const screen = new Screen(root, options);
  root.addEventListener("submit", screen.onSubmit);
  return screen;
}

function render({ model, el }) {
  const tell = (name, value) => {
    if (model.get(name) === undefined) return;
    model.set(name, typeof model.get(name) === "number" ? Number(value) : value);
    model.save_changes();
  };
  let screen;
  const draw = () => {
    screen?.gone();
    const box = document.createElement("div");
    el.replaceChildren(box);
    screen = mount(box, { html: model.get("_html"), send: (message) => model.send(message), tell, stage: model.get("stage") });
    if (model.get("pinned")) screen.pinPath(model.get("pinned"));
  };
  draw();
  const hearers = {
    "msg:custom": (message) => screen.hear(message),
    "change:_html": draw,
    "change:stage": () => {
      screen.stage = model.get("stage");
      for (const view of el.querySelectorAll(".pv")) screen.toStage(view, screen.stage, false);
    },
    "change:pinned": () => screen.pinPath(model.get("pinned")),
  };
  for (const [name, hear] of Object.entries(hearers)) model.on(name, hear);
  // The static view is for readers without a kernel.
  const still = document.getElementById(model.get("_static"));
  if (still) still.hidden = true;
  return () => {
    screen.gone();
    for (const [name, hear] of Object.entries(hearers)) model.off(name, hear);
    if (still) still.hidden = false;
  };
}

export default { render };
