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

function button(text, act, attributes) {
  return makeButton("tpb-button", text, act, attributes);
}

function badge(text, look = "") {
  return make("span", `tpb-badge${look}`, text);
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
  const options = values.map((value) => make("option", "", value, { value }));
  if (none !== null) options.unshift(make("option", "", none, { value: "" }));
  const box = make("select", "", options, { "aria-label": label, change: () => onChange(box.value) });
  return [make("label", "tpb-field", [label, box]), box];
}

function checkbox(label, checked, onChange) {
  const box = make("input", "", undefined, { type: "checkbox", change: () => onChange(box.checked) });
  box.checked = checked;
  return make("label", "tpb-check", [box, make("span", "", label)]);
}

/** Names and what each is, as a list of facts. */
function facts(pairs) {
  return make("dl", "tpb-facts", pairs.flatMap(([name, text]) => [make("dt", "", name), make("dd", "", text, scrolled(text))]));
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
    const changeAxes = () => {
      this.setAxes([rowsBox.value, columnsBox.value]);
      this.keepPlace(this.status.textContent);
    };
    const [rowsField, rowsBox] = select("rows", facets.axes, changeAxes, null);
    const [columnsField, columnsBox] = select("columns", facets.axes, changeAxes, null);
    this.axisBoxes = [rowsBox, columnsBox];

    let timer = 0;
    const search = () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.choose("text", this.search.value), 200);
    };
    this.search = make("input", "", undefined, { type: "text", "aria-label": "text", placeholder: "search answer, question, reason", input: search });
    const filters = [this.search];
    const more = [];
    this.boxes = {};
    for (const name of SELECTS) {
      if (!facets[name] || facets[name].length < (FIRST_SELECTS.includes(name) ? 1 : 2)) continue;
      const [field, box] = select(name, facets[name], (value) => this.choose(name, value));
      this.boxes[name] = box;
      (FIRST_SELECTS.includes(name) ? filters : more).push(field);
    }
    this.failuresBox = checkbox("failures only", false, (on) => this.choose("failures", on));
    this.foldBox = checkbox("fold equal causes", true, (on) => this.choose("fold", on));
    more.push(...this.flipFields(facets), this.columnChooser());
    filters.push(this.failuresBox, this.foldBox, make("details", "tpb-more", [make("summary", "", "more filters"), make("div", "tpb-bar", more)]));
    this.chips = make("div", "tpb-chips", undefined, { role: "group", "aria-label": "What is filtered" });

    this.map = make("div", "tpb-scroll");
    this.mapTitle = make("summary", "", "");
    this.mapBox = make("details", "tpb-fold", [this.mapTitle, make("div", "tpb-bar", [rowsField, columnsField]), this.map]);
    this.status = make("div", "tpb-status", "", { role: "status", "aria-live": "polite" });
    // The status keeps its counts; what is opened is only said.
    this.live = make("div", "tpb-hidden", "", { role: "status", "aria-live": "polite" });
    const scroll = () => {
      if (this.list.scrollTop + this.list.clientHeight > this.list.scrollHeight - 80) this.more();
    };
    this.list = make("div", "tpb-list", undefined, { role: "listbox", tabindex: "0", "aria-label": "Trials, failures first", scroll });
    this.detail = make("div", "tpb-detail", undefined, { role: "region", "aria-label": "Trial" });
    this.help = make("dialog", "tpb-help", [facts(KEYS), button("close", () => this.help.close())], { "aria-label": "Keys" });
    const keys = KEYS.map(([key, words]) => `${key} ${words}`).join(" · ");
    this.root.append(
      this.mapBox,
      make("div", "tpb-bar", filters, { role: "search", "aria-label": "Filters" }),
      this.chips,
      this.status,
      this.live,
      make("div", "tpb-panes", [this.list, this.detail]),
      make("p", "tpb-keys", keys),
      this.help,
    );
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
      ...chips.map(([words, act]) => makeButton("tpb-chip", `${words} ×`, act, { "aria-label": `take away ${words}` })),
    );
  }

  unset(name) {
    this.query[name] = null;
    this.refresh();
  }

  /** Two values of model, arm or prompt protocol: only trials whose success differs between them. */
  flipFields(facets) {
    const pairs = ["arm", "model", "prompt_protocol"].flatMap((name) => (facets[name] || []).map((value) => [name, value]));
    if (pairs.length < 2) return [];
    const labels = pairs.map(([name, value]) => `${name}: ${value}`);
    const change = () => {
      const a = pairs[labels.indexOf(aBox.value)];
      const b = pairs[labels.indexOf(bBox.value)];
      this.query.flips = a && b && a[0] === b[0] && a[1] !== b[1] ? [a[0], a[1], b[1]] : null;
      this.refresh();
    };
    const [aField, aBox] = select("different only: a", labels, change, "–");
    const [bField, bBox] = select("and b", labels, change, "–");
    return [aField, bField];
  }

  columnChooser() {
    const boxes = COLUMNS.map((name) =>
      checkbox(name, this.columns.has(name), (on) => {
        if (on) this.columns.add(name);
        else this.columns.delete(name);
        this.drawLines();
      }),
    );
    return make("details", "", [make("summary", "", "columns"), ...boxes]);
  }

  // the heatmap

  drawMap({ axes, rows, columns, cells, measure }) {
    this.axes = axes;
    this.axisBoxes.forEach((box, i) => (box.value = axes[i]));
    this.mapTitle.textContent = `${measure} by ${axes[0]} and ${axes[1]}`;
    const figures = new Map(cells.map((cell) => [JSON.stringify(cell.slice(0, 2)), cell]));
    const lines = rows.map((row) => {
      const boxes = columns.map((column) => this.cell(row, column, figures.get(JSON.stringify([row, column]))));
      return make("tr", "", [make("th", "", row || "–", { scope: "row" }), ...boxes]);
    });
    const head = make("tr", "", heads([`${axes[0]} × ${axes[1]}`, ...columns.map((name) => name || "–")]));
    const caption = make("caption", "tpb-soft", `${measure}, with 95 % intervals`);
    this.map.replaceChildren(make("table", "tpb-map", [caption, make("thead", "", [head]), make("tbody", "", lines)]));
    if (this.cellFocus) {
      const again = [...this.map.querySelectorAll(".tpb-cell")].find((b) => b.dataset.key === this.cellFocus);
      if (again) again.focus();
      this.cellFocus = null;
    }
  }

  cell(row, column, figure) {
    if (!figure) return make("td", "", "–");
    const [, , n, judged, success, low, high] = figure;
    const interval = low === null ? "" : `${percent(low)} to ${percent(high)}, `;
    const words = [success === null ? "–" : percent(success), make("small", "", `${interval}n ${judged}${n === judged ? "" : ` of ${n}`}`)];
    const key = JSON.stringify([row, column]);
    const isChosen = () => JSON.stringify(this.query.cell) === key;
    const choose = () => {
      this.query.cell = isChosen() ? null : [row, column];
      this.cellFocus = key;
      this.refresh();
    };
    const box = makeButton("tpb-cell", words, choose, { "data-key": key, "aria-pressed": String(isChosen()) });
    box.style.setProperty("--rate", success ?? 0);
    return make("td", "", [box]);
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
    const open = () => {
      this.go(i);
      this.open();
    };
    const row = make("div", "tpb-row", undefined, { role: "option", id: `${this.uid}-${i}`, "aria-selected": "false", click: open });
    const sign = line.failed ? SIGNS.true : line.outcome && line.outcome !== "ungraded" ? SIGNS.false : "·";
    row.append(make("span", "tpb-sign", [sign, make("span", "tpb-hidden", line.failed ? "failure: " : "")]), make("span", "tpb-question", line.question || line.case_id));
    if (line.cause) row.append(badge(line.cause, " tpb-bad"));
    else if (line.verdict) row.append(badge(line.verdict));
    const alike = this.alike?.[line.cause] || 0;
    if (this.query.fold && line.failed && alike > 1) row.append(this.unfolder(line.cause, alike, line.trial_id));
    if (line.override) row.append(badge(`by hand: ${line.override}`));
    if (line.note) row.append(badge(`note: ${line.note}`));
    const under = make("span", "tpb-under");
    for (const name of COLUMNS) {
      const text = name === "detail" ? line.detail || line.missing_reason : line[name];
      if (this.columns.has(name) && text) under.append(make("span", "tpb-soft", text));
    }
    if (line.calls.length) under.append(make("code", "tpb-call", line.calls.join("; ")));
    row.append(under);
    // The text says most where no call tells it.
    if (!line.calls.length || line.failed) {
      const [before, wrong, after] = line.excerpt;
      row.append(make("span", "tpb-excerpt", [before, ...(wrong ? [make("mark", "", wrong)] : []), after]));
    }
    return row;
  }

  /** How many failures have one cause; a click shows them, or folds them again. */
  unfolder(cause, count, trial_id) {
    const isOpen = this.query.unfolded.includes(cause);
    const click = (event) => {
      event.stopPropagation();
      this.unfold(cause, trial_id);
    };
    return make("span", "tpb-badge tpb-alike", `×${count} ${isOpen ? "▾" : "▸"}`, { title: isOpen ? "fold (Space)" : "show all of this cause (Space)", click });
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
    const view = make("div");
    this.remarks = make("div");
    const why = make("p", "tpb-why", message.sentence || "", { "aria-live": "polite" });
    if (message.outcome) why.prepend(make("strong", "", `${message.outcome} `));
    this.next = make("div", "tpb-bar", undefined, { role: "group", "aria-label": "What to try next" });
    const bar = this.copies(message.copies);
    // The workbench has a sentence of its own, which follows what is changed.
    const parts = message.bench ? [bar, this.next, view] : [why, bar, conversation(message.asked), view, this.next];
    this.detail.replaceChildren(...parts, facts(message.facts), this.remarks);
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
    this.next.append(...steps.map(({ words, values }) => button(words, () => this.toggleBench(values))));
  }

  copies(texts) {
    const copy = async (name, text) => {
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
    };
    const buttons = Object.entries(texts).map(([name, text]) => button(`copy ${name.replace("as_", "as ")}`, () => copy(name, text)));
    const bar = make("div", "tpb-bar", [button("workbench (w)", () => this.toggleBench(), { "aria-pressed": `${this.benching}` }), ...buttons]);
    return bar;
  }

  drawRemarks({ trial_id, remarks }) {
    if (!this.first.outcomes.length) return;
    const note = make("textarea", "", undefined, { "aria-label": "note", placeholder: "a note on this trial" });
    note.value = remarks.note;
    const keep = button("keep note", () => this.ask({ kind: "note", trial_id, text: note.value }));
    const [field, box] = select("outcome by hand", this.first.outcomes, () => {}, "as scored");
    box.value = remarks.outcome;
    const why = make("input", "", undefined, { type: "text", "aria-label": "why", placeholder: "why" });
    why.value = remarks.why;
    const set = button("set outcome", () => this.ask({ kind: "override", trial_id, outcome: box.value, why: why.value }));
    this.remarks.replaceChildren(note, make("div", "tpb-bar", [keep, field, why, set]));
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
  const said = ([role, text]) => {
    const look = ["user", "assistant", "tool"].includes(role) ? role : "system";
    return make("div", `tpb-said tpb-${look}`, [make("b", "", role), make("div", "", text, scrolled(text))]);
  };
  const earlier = messages.slice(0, -1);
  const title = earlier.length === 1 ? "1 message before" : `${earlier.length} messages before`;
  const fold = earlier.length ? [make("details", "", [make("summary", "tpb-soft", title), ...earlier.map(said)])] : [];
  return make("div", "tpb-asked", [...fold, ...messages.slice(-1).map(said)], { role: "group", "aria-label": "Conversation" });
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
  const stop = listen(model, { "msg:custom": (message) => browser.onMessage(message) });
  return () => {
    browser.gone();
    stop();
  };
}

export default { render };
