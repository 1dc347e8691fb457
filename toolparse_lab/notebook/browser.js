// The browser's front end. Text only ever goes in through textContent; nothing here talks to a network.

const SIGNS = { true: "✗", false: "✓" };
const COLUMNS = ["case_id", "model", "arm", "prompt_protocol", "category", "outcome", "detail", "trial_id"];
const SHOWN_AT_FIRST = ["model"];
const FIRST_SELECTS = ["verdict", "cause", "tool"];
// Filters by a text that are members of the query themselves; the others are columns.
const OWN = ["code", "rule", "tool", "text"];
const SELECTS = [...FIRST_SELECTS, "model", "arm", "prompt_protocol", "category", "outcome", "code", "rule"];
const KEYS = [
  ["↑ ↓", "line"],
  ["Enter", "open"],
  ["w", "workbench"],
  ["n p", "next, previous failure"],
  ["e", "edit the text on the workbench"],
  ["1–6", "stage on the workbench"],
  ["/", "search"],
  ["Esc", "leave a field, close the trial"],
  ["?", "these keys"],
];
const NARROW = 760; // pixels, as in the style

function make(tag, className, text, attributes = {}) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function percent(rate) {
  return `${Math.round(rate * 100)} %`;
}

/** The texts of `OWN` in a query or an address, '' where one is not there. */
function ownTexts(source) {
  return Object.fromEntries(OWN.map((name) => [name, source[name] || ""]));
}

/** A labelled select; the first option stands for no choice. */
function select(label, values, onChange, none = "all") {
  const field = make("label", "tpb-field", label);
  const box = make("select", "", undefined, { "aria-label": label });
  if (none !== null) box.append(make("option", "", none, { value: "" }));
  for (const value of values) box.append(make("option", "", value, { value }));
  box.addEventListener("change", () => onChange(box.value));
  field.append(box);
  return [field, box];
}

function checkbox(label, checked, onChange) {
  const field = make("label", "tpb-check");
  const box = make("input", "", undefined, { type: "checkbox" });
  box.checked = checked;
  box.addEventListener("change", () => onChange(box.checked));
  field.append(box, make("span", "", label));
  return field;
}

class Browser {
  /** place: keeps the filters and the open trial in the page's address; null where there is no page of its own. */
  constructor(root, first, { send, loadView, place = null }) {
    this.first = first;
    this.place = place;
    this.opened = "";
    this.send = send;
    this.loadView = loadView;
    this.uid = `tpb${Math.random().toString(36).slice(2, 9)}`;
    this.query = { where: {}, cell: null, ...ownTexts({}), failures: false, flips: null, fold: true, unfolded: [] };
    this.axes = first.cells.axes;
    this.columns = new Set(SHOWN_AT_FIRST);
    this.lines = [];
    this.total = 0;
    this.at = -1;
    this.seq = 0;
    this.bench = null;
    this.benching = false;
    this.waiting = null;
    this.after = null;
    this.root = make("div", "tpb", undefined, { "data-lm-suppress-shortcuts": "true", role: "region", "aria-label": "Trials" });
    this.build();
    root.replaceChildren(this.root);
    // A page of its own belongs to the list; a notebook has other things to see.
    this.mapBox.open = !(this.root.clientWidth && this.root.clientWidth < NARROW);
    this.drawMap(first.cells);
    this.take(first.page);
    // A page of its own hears its keys from wherever one is.
    this.keySource = place ? document : this.root;
    this.hearKey = (event) => this.onKey(event);
    this.keySource.addEventListener("keydown", this.hearKey);
    if (place) {
      this.restore(place.read());
      place.onBack((parts) => this.restore(parts));
    }
  }

  gone() {
    this.keySource.removeEventListener("keydown", this.hearKey);
  }

  // the place in the address

  keepPlace(title, isNew = true) {
    if (!this.place) return;
    const { where, cell, failures, flips, fold } = this.query;
    const parts = { ...ownTexts(this.query), failures: failures ? "1" : "", fold: fold ? "" : "0" };
    for (const [name, values] of Object.entries(where)) parts[name] = values[0] || "";
    if (cell) parts.cell = JSON.stringify([...this.axes, ...cell]);
    if (flips) parts.flips = JSON.stringify(flips);
    if (`${this.axes}` !== `${this.first.cells.axes}`) parts.axes = JSON.stringify(this.axes);
    parts.trial = this.opened;
    parts.bench = this.opened && this.benching ? "1" : "";
    this.place.write(parts, title, isNew);
  }

  restore({ failures, fold, cell, flips, axes, trial = "", bench, ...rest }) {
    const query = { where: {}, ...ownTexts(rest), failures: failures === "1", fold: fold !== "0", cell: null, flips: null, unfolded: [] };
    for (const [name, value] of Object.entries(rest)) if (SELECTS.includes(name) && !OWN.includes(name)) query.where[name] = [value];
    try {
      if (cell) query.cell = JSON.parse(cell).slice(2);
      if (flips) query.flips = JSON.parse(flips);
      const wanted = axes ? JSON.parse(axes) : this.first.cells.axes;
      if (`${wanted}` !== `${this.axes}`) this.setAxes(wanted);
    } catch {
      this.status.textContent = "a part of the address cannot be read";
    }
    const changed = JSON.stringify({ ...this.query, ...query }) !== JSON.stringify(this.query);
    this.query = { ...this.query, ...query };
    this.benching = bench === "1";
    this.restoring = true;
    if (changed) this.refresh();
    if (trial) this.ask({ kind: "open", trial_id: trial, bench: this.benching });
    else if (this.opened) this.close();
    this.restoring = false;
  }

  build() {
    const { facets } = this.first;
    const axes = make("div", "tpb-bar");
    const changeAxes = () => {
      this.setAxes([rowsBox.value, columnsBox.value]);
      this.keepPlace(this.status.textContent);
    };
    const [rowsField, rowsBox] = select("rows", facets.axes, changeAxes, null);
    const [columnsField, columnsBox] = select("columns", facets.axes, changeAxes, null);
    this.axisBoxes = [rowsBox, columnsBox];
    axes.append(rowsField, columnsField);

    const filters = make("div", "tpb-bar", undefined, { role: "search", "aria-label": "Filters" });
    const more = make("details", "tpb-more");
    const moreBar = make("div", "tpb-bar");
    more.append(make("summary", "", "more filters"), moreBar);
    this.search = make("input", "", undefined, { type: "text", "aria-label": "text", placeholder: "search answer, question, reason" });
    let timer = 0;
    this.search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.choose("text", this.search.value), 200);
    });
    filters.append(this.search);
    this.boxes = {};
    for (const name of SELECTS) {
      if (!facets[name] || facets[name].length < (FIRST_SELECTS.includes(name) ? 1 : 2)) continue;
      const [field, box] = select(name, facets[name], (value) => this.choose(name, value));
      this.boxes[name] = box;
      (FIRST_SELECTS.includes(name) ? filters : moreBar).append(field);
    }
    this.failuresBox = checkbox("failures only", false, (on) => this.choose("failures", on));
    this.foldBox = checkbox("fold equal causes", true, (on) => this.choose("fold", on));
    filters.append(this.failuresBox, this.foldBox, more);
    this.buildFlips(moreBar, facets);
    moreBar.append(this.columnChooser());
    this.chips = make("div", "tpb-chips", undefined, { role: "group", "aria-label": "What is filtered" });

    this.map = make("div", "tpb-scroll");
    this.mapBox = make("details", "tpb-fold");
    this.mapTitle = make("summary", "", "");
    this.mapBox.append(this.mapTitle, axes, this.map);
    this.status = make("div", "tpb-status", "", { role: "status", "aria-live": "polite" });
    // The status keeps its counts; what is opened is only said.
    this.live = make("div", "tpb-hidden", "", { role: "status", "aria-live": "polite" });
    this.list = make("div", "tpb-list", undefined, { role: "listbox", tabindex: "0", "aria-label": "Trials, failures first" });
    this.list.addEventListener("scroll", () => {
      if (this.list.scrollTop + this.list.clientHeight > this.list.scrollHeight - 80) this.more();
    });
    this.detail = make("div", "tpb-detail", undefined, { role: "region", "aria-label": "Trial" });
    const panes = make("div", "tpb-panes");
    panes.append(this.list, this.detail);
    this.help = make("dialog", "tpb-help", undefined, { "aria-label": "Keys" });
    const table = make("dl", "tpb-facts");
    for (const [key, words] of KEYS) table.append(make("dt", "", key), make("dd", "", words));
    const shut = make("button", "tpb-button", "close", { type: "button" });
    shut.addEventListener("click", () => this.help.close());
    this.help.append(table, shut);
    const keys = KEYS.map(([key, words]) => `${key} ${words}`).join(" · ");
    this.root.append(this.mapBox, filters, this.chips, this.status, this.live, panes, make("p", "tpb-keys", keys), this.help);
  }

  setAxes(axes) {
    this.axes = axes;
    this.ask({ kind: "axes", rows: axes[0], columns: axes[1] }, true);
  }

  /** Set one filter; '' or false takes it away. */
  choose(name, value) {
    if (name in this.query) this.query[name] = value;
    else this.query.where = { ...this.query.where, [name]: value ? [value] : [] };
    this.query.unfolded = [];
    this.refresh();
  }

  /** The filters at work, each with a button that takes it away; and every control as it is set. */
  drawChips() {
    const { where, cell, failures, flips, fold } = this.query;
    const set = { ...Object.fromEntries(Object.entries(where).map(([name, values]) => [name, values[0] || ""])), ...ownTexts(this.query) };
    for (const [name, box] of Object.entries(this.boxes)) box.value = set[name] || "";
    this.failuresBox.firstChild.checked = failures;
    this.foldBox.firstChild.checked = fold;
    if (this.search.value !== set.text) this.search.value = set.text;
    const chips = Object.entries(set).filter(([, value]) => value).map(([name, value]) => [`${name}: ${value}`, () => this.choose(name, "")]);
    if (cell) chips.push([cell.join(" × "), () => this.unset("cell")]);
    if (flips) chips.push([`different between ${flips[1]} and ${flips[2]}`, () => this.unset("flips")]);
    this.chips.replaceChildren(
      ...chips.map(([words, act]) => {
        const chip = make("button", "tpb-chip", `${words} ×`, { type: "button", "aria-label": `take away ${words}` });
        chip.addEventListener("click", act);
        return chip;
      }),
    );
  }

  unset(name) {
    this.query[name] = null;
    this.refresh();
  }

  /** Two values of model, arm or prompt protocol: only trials whose success differs between them. */
  buildFlips(filters, facets) {
    const pairs = [];
    for (const name of ["arm", "model", "prompt_protocol"]) {
      for (const value of facets[name] || []) pairs.push([name, value]);
    }
    if (pairs.length < 2) return;
    const labels = pairs.map(([name, value]) => `${name}: ${value}`);
    const change = () => {
      const a = pairs[labels.indexOf(aBox.value)];
      const b = pairs[labels.indexOf(bBox.value)];
      this.query.flips = a && b && a[0] === b[0] && a[1] !== b[1] ? [a[0], a[1], b[1]] : null;
      this.refresh();
    };
    const [aField, aBox] = select("different only: a", labels, change, "–");
    const [bField, bBox] = select("and b", labels, change, "–");
    filters.append(aField, bField);
  }

  columnChooser() {
    const details = make("details");
    details.append(make("summary", "", "columns"));
    for (const name of COLUMNS) {
      details.append(checkbox(name, this.columns.has(name), (on) => {
        if (on) this.columns.add(name);
        else this.columns.delete(name);
        this.drawLines();
      }));
    }
    return details;
  }

  // the heatmap

  drawMap({ axes, rows, columns, cells, measure }) {
    this.axes = axes;
    this.axisBoxes.forEach((box, i) => (box.value = axes[i]));
    this.mapTitle.textContent = `${measure} by ${axes[0]} and ${axes[1]}`;
    const figures = new Map(cells.map((cell) => [JSON.stringify(cell.slice(0, 2)), cell]));
    const table = make("table", "tpb-map");
    table.append(make("caption", "tpb-soft", `${measure}, with 95 % intervals`));
    const head = make("tr");
    head.append(make("th", "", `${axes[0]} × ${axes[1]}`, { scope: "col" }));
    for (const name of columns) head.append(make("th", "", name || "–", { scope: "col" }));
    const top = make("thead");
    top.append(head);
    const body = make("tbody");
    for (const row of rows) {
      const line = make("tr");
      line.append(make("th", "", row || "–", { scope: "row" }));
      for (const column of columns) line.append(this.cell(row, column, figures.get(JSON.stringify([row, column]))));
      body.append(line);
    }
    table.append(top, body);
    this.map.replaceChildren(table);
    if (this.cellFocus) {
      const again = [...this.map.querySelectorAll(".tpb-cell")].find((b) => b.dataset.key === this.cellFocus);
      if (again) again.focus();
      this.cellFocus = null;
    }
  }

  cell(row, column, figure) {
    const place = make("td");
    if (!figure) {
      place.textContent = "–";
      return place;
    }
    const [, , n, judged, success, low, high] = figure;
    const button = make("button", "tpb-cell", success === null ? "–" : percent(success), { type: "button" });
    button.dataset.key = JSON.stringify([row, column]);
    const interval = low === null ? "" : `${percent(low)} to ${percent(high)}, `;
    button.append(make("small", "", `${interval}n ${judged}${n === judged ? "" : ` of ${n}`}`));
    button.style.setProperty("--rate", success === null ? 0 : success);
    const chosen = this.query.cell && this.query.cell[0] === row && this.query.cell[1] === column;
    button.setAttribute("aria-pressed", chosen ? "true" : "false");
    button.addEventListener("click", () => {
      this.query.cell = this.query.cell && this.query.cell[0] === row && this.query.cell[1] === column ? null : [row, column];
      this.cellFocus = button.dataset.key;
      this.refresh();
    });
    place.append(button);
    return place;
  }

  /** Arrow keys move between the cells of the heatmap. */
  moveCell(button, key) {
    const buttons = [...this.map.querySelectorAll(".tpb-cell")];
    const width = this.map.querySelectorAll("thead th").length - 1;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -width, ArrowDown: width }[key];
    const target = buttons[buttons.indexOf(button) + step];
    if (target) target.focus();
  }

  // lines

  ask(message, isNew = false) {
    this.seq += 1;
    if (isNew) {
      this.waiting = this.seq;
      this.query = { ...this.query, cell: message.kind === "axes" ? null : this.query.cell };
    }
    this.send({ ...message, query: this.query, seq: this.seq });
  }

  refresh() {
    this.ask({ kind: "page", start: 0 }, true);
    this.drawChips();
    if (!this.restoring) this.keepPlace(this.status.textContent);
  }

  more() {
    if (this.loading || this.lines.length >= this.total) return;
    this.loading = true;
    this.ask({ kind: "page", start: this.lines.length });
  }

  onMessage(message) {
    if (message.kind === "page") {
      // The answer to an older query comes too late.
      if (this.waiting !== null && message.seq < this.waiting) return;
      if (message.cells) this.drawMap(message.cells);
      this.take(message);
    } else if (message.kind === "trial") this.drawTrial(message);
    else if (message.kind === "next") this.drawNext(message);
    else if (message.kind === "bench") this.bench?.hear(message.reply);
    else if (message.kind === "remarks") this.drawRemarks(message);
    else if (message.kind === "error") this.status.textContent = message.text;
  }

  take(page) {
    if (page.start === 0) {
      this.lines = [];
      this.at = -1;
      this.list.scrollTop = 0;
    }
    if (page.start !== this.lines.length) return;
    this.loading = false;
    this.lines.push(...page.lines);
    this.total = page.total;
    this.failures = page.failures;
    this.alike = page.alike;
    this.status.textContent = page.summary;
    this.drawLines(page.start);
    if (page.start === 0 && this.opened) this.go(this.lines.findIndex((line) => line.trial_id === this.opened));
    if (this.after) {
      const go = this.after;
      this.after = null;
      go();
    }
  }

  drawLines(from = 0) {
    if (from === 0) this.list.replaceChildren();
    this.lines.slice(from).forEach((line, i) => this.list.append(this.row(line, from + i)));
    if (!this.lines.length) this.list.replaceChildren(make("div", "tpb-row tpb-soft", "no trial fits"));
    this.mark();
  }

  row(line, i) {
    const row = make("div", "tpb-row", undefined, { role: "option", id: `${this.uid}-${i}`, "aria-selected": "false" });
    const sign = make("span", "tpb-sign", line.failed ? SIGNS.true : line.outcome && line.outcome !== "ungraded" ? SIGNS.false : "·");
    sign.append(make("span", "tpb-hidden", line.failed ? "failure: " : ""));
    row.append(sign, make("span", "tpb-question", line.question || line.case_id));
    if (line.cause) row.append(make("span", "tpb-badge tpb-bad", line.cause));
    else if (line.verdict) row.append(make("span", "tpb-badge", line.verdict));
    const alike = this.alike?.[line.cause] || 0;
    if (this.query.fold && line.failed && alike > 1) row.append(this.unfolder(line.cause, alike, line.trial_id));
    if (line.override) row.append(make("span", "tpb-badge", `by hand: ${line.override}`));
    if (line.note) row.append(make("span", "tpb-badge", `note: ${line.note}`));
    const under = make("span", "tpb-under");
    for (const name of COLUMNS) {
      const text = name === "detail" ? line.detail || line.missing_reason : line[name];
      if (this.columns.has(name) && text) under.append(make("span", "tpb-soft", text));
    }
    if (line.calls.length) under.append(make("code", "tpb-call", line.calls.join("; ")));
    row.append(under);
    // The text says most where no call tells it.
    if (!line.calls.length || line.failed) {
      const excerpt = make("span", "tpb-excerpt", line.excerpt[0]);
      if (line.excerpt[1]) excerpt.append(make("mark", "", line.excerpt[1]));
      excerpt.append(document.createTextNode(line.excerpt[2]));
      row.append(excerpt);
    }
    row.addEventListener("click", () => {
      this.go(i);
      this.open();
    });
    return row;
  }

  /** How many failures have one cause; a click shows them, or folds them again. */
  unfolder(cause, count, trial_id) {
    const isOpen = this.query.unfolded.includes(cause);
    const more = make("span", "tpb-badge tpb-alike", `×${count} ${isOpen ? "▾" : "▸"}`, { title: isOpen ? "fold (Space)" : "show all of this cause (Space)" });
    more.addEventListener("click", (event) => {
      event.stopPropagation();
      this.unfold(cause, trial_id);
    });
    return more;
  }

  unfold(cause, trial_id) {
    if (!cause) return;
    const { unfolded } = this.query;
    this.query.unfolded = unfolded.includes(cause) ? unfolded.filter((other) => other !== cause) : [...unfolded, cause];
    this.after = () => this.go(this.lines.findIndex((line) => line.trial_id === trial_id));
    this.ask({ kind: "page", start: 0 }, true);
  }

  go(i) {
    if (i >= this.lines.length && this.lines.length < this.total) {
      this.after = () => this.go(i);
      this.more();
      return;
    }
    if (i < 0 && this.opened) return;
    this.at = Math.max(0, Math.min(i, this.lines.length - 1));
    this.mark();
    const row = this.list.children[this.at];
    if (row) row.scrollIntoView({ block: "nearest" });
  }

  mark() {
    [...this.list.children].forEach((row, i) => row.setAttribute("aria-selected", i === this.at ? "true" : "false"));
    if (this.at >= 0) this.list.setAttribute("aria-activedescendant", `${this.uid}-${this.at}`);
    else this.list.removeAttribute("aria-activedescendant");
  }

  open() {
    if (this.at < 0) this.go(0);
    const line = this.lines[this.at];
    if (line) this.ask({ kind: "open", trial_id: line.trial_id, bench: this.benching });
  }

  /** The workbench takes the parse view's place, or gives it back; the next trials keep to it. */
  toggleBench(values = null) {
    this.benching = values !== null || !this.benching;
    this.focusBench = this.benching;
    if (!this.opened) this.open();
    else this.ask({ kind: "open", trial_id: this.opened, bench: this.benching, values });
  }

  /** The next (1) or previous (-1) failure is opened: failures stand first, so it is a neighbour. */
  nextFailure(step) {
    const target = this.at + step;
    if (target < 0 || target >= this.failures) {
      this.status.textContent = step > 0 ? "no further failure" : "no earlier failure";
      return;
    }
    const open = () => {
      this.go(target);
      this.open();
    };
    if (target < this.lines.length) open();
    else {
      this.after = open;
      this.more();
    }
  }

  // one trial

  async drawTrial(message) {
    const line = this.lines[this.at];
    if (line && line.trial_id !== message.trial_id) {
      // From the address, or from a list that has changed behind it.
      const i = this.lines.findIndex((other) => other.trial_id === message.trial_id);
      if (i >= 0) this.go(i);
    }
    const isOther = this.opened !== message.trial_id;
    this.opened = message.trial_id;
    this.root.classList.add("tpb-open");
    const facts = make("dl", "tpb-facts");
    for (const [name, text] of message.facts) facts.append(make("dt", "", name), make("dd", "", text, scrolled(text)));
    const view = make("div");
    this.remarks = make("div");
    const why = make("p", "tpb-why", message.sentence || "", { "aria-live": "polite" });
    if (message.outcome) why.prepend(make("strong", "", `${message.outcome} `));
    this.next = make("div", "tpb-bar", undefined, { role: "group", "aria-label": "What to try next" });
    const bar = this.copies(message.copies);
    // The workbench has a sentence of its own, which follows what is changed.
    const parts = message.bench ? [bar, this.next, view] : [why, bar, conversation(message.asked), view, this.next];
    this.detail.replaceChildren(...parts, facts, this.remarks);
    if (isOther) this.detail.scrollTop = 0;
    this.drawRemarks(message);
    this.live.textContent = `trial ${message.trial_id} is open`;
    this.keepPlace(message.title, isOther);
    this.bench = null;
    if (message.view || message.bench) {
      this.ask({ kind: "next", trial_id: message.trial_id });
      const module = await this.loadView();
      const send = (own) => this.ask({ kind: "bench", message: own });
      if (message.bench) this.bench = module.mountBench(view, message.bench, send);
      else module.mount(view, message.view, {});
    }
    if (this.bench && this.focusBench) this.bench.focus();
    this.focusBench = false;
    const row = this.list.children[this.at];
    if (row) row.scrollIntoView({ block: "nearest" });
  }

  drawNext({ trial_id, steps }) {
    if (trial_id !== this.opened) return;
    for (const { words, values } of steps) {
      const button = make("button", "tpb-button", words, { type: "button" });
      button.addEventListener("click", () => this.toggleBench(values));
      this.next.append(button);
    }
  }

  copies(texts) {
    const bar = make("div", "tpb-bar");
    const edit = make("button", "tpb-button", "workbench (w)", { type: "button", "aria-pressed": `${this.benching}` });
    edit.addEventListener("click", () => this.toggleBench());
    bar.append(edit);
    for (const [name, text] of Object.entries(texts)) {
      const button = make("button", "tpb-button", `copy ${name.replace("as_", "as ")}`, { type: "button" });
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(text);
          this.status.textContent = "copied";
        } catch {
          // Without a clipboard the text is shown, to be copied by hand.
          const box = make("textarea", "", undefined, { readonly: "", "aria-label": name });
          box.value = text;
          bar.append(box);
          box.select();
        }
      });
      bar.append(button);
    }
    return bar;
  }

  drawRemarks({ trial_id, remarks }) {
    if (!this.first.outcomes.length) return;
    const note = make("textarea", "", undefined, { "aria-label": "note", placeholder: "a note on this trial" });
    note.value = remarks.note;
    const keep = make("button", "tpb-button", "keep note", { type: "button" });
    keep.addEventListener("click", () => this.ask({ kind: "note", trial_id, text: note.value }));
    const [field, box] = select("outcome by hand", this.first.outcomes, () => {}, "as scored");
    box.value = remarks.outcome;
    const why = make("input", "", undefined, { type: "text", "aria-label": "why", placeholder: "why" });
    why.value = remarks.why;
    const set = make("button", "tpb-button", "set outcome", { type: "button" });
    set.addEventListener("click", () => this.ask({ kind: "override", trial_id, outcome: box.value, why: why.value }));
    const bar = make("div", "tpb-bar");
    bar.append(keep, field, why, set);
    this.remarks.replaceChildren(note, bar);
    const i = this.lines.findIndex((line) => line.trial_id === trial_id);
    if (i >= 0 && this.lines[i].note + this.lines[i].override !== remarks.note + remarks.outcome) {
      this.lines[i] = { ...this.lines[i], note: remarks.note, override: remarks.outcome };
      this.list.children[i].replaceWith(this.row(this.lines[i], i));
      this.mark();
      this.status.textContent = "kept";
    }
  }

  close() {
    this.opened = "";
    this.keepPlace(this.status.textContent);
    this.root.classList.remove("tpb-open");
    this.detail.replaceChildren();
    this.list.focus();
  }

  onKey(event) {
    const target = event.target;
    const typing = target.matches?.("textarea, select, input:not([type=checkbox])");
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open) return;
    if (typing && event.key !== "Escape") return;
    // Keys of the parse view are its own.
    if (this.detail.contains(target) && !["n", "p", "w", "e", "?", "Escape"].includes(event.key) && !this.bench) return;
    const onList = target === this.list || target === document.body;
    if (target.classList?.contains("tpb-cell") && event.key.startsWith("Arrow")) this.moveCell(target, event.key);
    else if (onList && event.key === "ArrowDown") this.go(this.at + 1);
    else if (onList && event.key === "ArrowUp") this.go(this.at - 1);
    else if (onList && event.key === "Home") this.go(0);
    else if (onList && event.key === "Enter") this.open();
    else if (target === this.list && event.key === " ") this.unfold(this.lines[this.at]?.cause, this.lines[this.at]?.trial_id);
    else if (event.key === "w") this.toggleBench();
    else if (event.key === "n") this.nextFailure(1);
    else if (event.key === "p") this.nextFailure(-1);
    else if (event.key === "/") this.search.focus();
    else if (event.key === "?") this.help.showModal();
    else if (this.bench && "e123456".includes(event.key)) this.bench.onKey(event);
    else if (event.key === "Escape" && typing) this.list.focus();
    else if (event.key === "Escape" && this.opened) this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** What makes a text that may scroll reachable by keyboard. */
function scrolled(text) {
  return text.length > 200 || text.split("\n").length > 5 ? { tabindex: "0" } : {};
}

/** The messages that were answered, the last one in full sight. */
function conversation(messages) {
  const box = make("div", "tpb-asked", undefined, { role: "group", "aria-label": "Conversation" });
  const said = ([role, text]) => {
    const part = make("div", `tpb-said tpb-${["user", "assistant", "tool"].includes(role) ? role : "system"}`);
    part.append(make("b", "", role), make("div", "", text, scrolled(text)));
    return part;
  };
  const earlier = messages.slice(0, -1);
  if (earlier.length) {
    const fold = make("details");
    fold.append(make("summary", "tpb-soft", earlier.length === 1 ? "1 message before" : `${earlier.length} messages before`), ...earlier.map(said));
    box.append(fold);
  }
  box.append(...messages.slice(-1).map(said));
  return box;
}

export function mountBrowser(root, first, options) {
  return new Browser(root, first, options);
}

function render({ model, el, place }) {
  let view;
  // The parse view is a module of its own; its source comes with the model, from no network.
  const loadView = () => {
    if (!view) view = import(URL.createObjectURL(new Blob([model.get("_view_source")], { type: "text/javascript" })));
    return view;
  };
  const first = model.get("_first");
  // The static view is for readers without a kernel.
  for (const element of document.querySelectorAll(`[data-toolparse-static="${first.uid}"]`)) element.hidden = true;
  const browser = mountBrowser(el, first, { send: (message) => model.send(message), loadView, place });
  const onMessage = (message) => browser.onMessage(message);
  model.on("msg:custom", onMessage);
  return () => {
    browser.gone();
    model.off("msg:custom", onMessage);
  };
}

export default { render };
