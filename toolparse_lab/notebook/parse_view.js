// The parse view's front end. Text only ever goes in through textContent; nothing here talks to a network.

const STAGE_NAMES = { raw: "Raw", repaired: "Repaired", decoded: "Decoded", coerced: "Coerced" };
// Verdict -> its sign and the class of its badge.
const VERDICTS = {
  none: ["·", "tp-plain"],
  clean: ["✓", "tp-good"],
  "repaired (lossless)": ["✓", "tp-good"],
  "repaired (lossy)": ["!", "tp-warn"],
  unchecked: ["?", "tp-warn"],
  invalid: ["✗", "tp-bad"],
  refused: ["✗", "tp-bad"],
  truncated: ["…", "tp-warn"],
  echoed: ["✗", "tp-bad"],
};

function verdictBadge(verdict) {
  const [sign, look] = VERDICTS[verdict];
  return make("span", `tp-badge ${look}`, `${sign} ${verdict}`);
}
const CHANGE_SIGNS = { repair: "R", read: "→", coerce: "C", error: "✗", warning: "!", info: "i" };
const LEGEND = [
  ["name", "tool name"],
  ["argument", "argument"],
  ["value", "value"],
  ["coerced", "coerced"],
  ["edit", "repaired"],
  ["dropped", "dropped"],
  ["added", "added"],
  ["problem", "problem"],
  ["opener", "opener, closer"],
  ["recovered", "recovered"],
  ["unclosed", "not closed"],
  ["reasoning", "reasoning"],
  ["markup", "markup"],
];

function counted(n, noun) {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}

/** Keys and what each does. */
function keyLine(className, keys) {
  const words = keys.flatMap(([key, word]) => [make("kbd", "tp-key", key), make("span", "", word)]);
  return make("div", className, words, { "aria-hidden": "true" });
}

function placed(start, end) {
  if (start < 0) return "no place of its own";
  return start === end ? `before character ${start}` : `characters ${start} to ${end}`;
}

class View {
  constructor(root, payload, { stage = "raw", digits = true, onStage = () => {}, onPin = () => {} } = {}) {
    this.digits = digits;
    this.payload = payload;
    this.onStage = onStage;
    this.onPin = onPin;
    this.uid = `tp${Math.random().toString(36).slice(2, 9)}`;
    this.pinned = -1;
    this.shown = -1;
    this.matches = [];
    this.link();
    // Lab would take 1–4, the arrows and Escape for itself without the attribute.
    this.root = make("div", "tp", undefined, {
      "data-lm-suppress-shortcuts": "true",
      role: "region",
      "aria-label": "Parse view",
      keydown: (event) => this.onKey(event),
    });
    this.root.append(
      this.header(),
      ...payload.notes.map((note) => make("p", "tp-note", note)),
      make("div", "tp-panes", [this.textPane(), this.treePane()]),
      this.changePane(),
      this.footer(),
    );
    root.replaceChildren(this.root);
    this.setStage(stage, false);
  }

  /** Which entities light together: a change with the arguments it changed, a container with what it holds. */
  link() {
    const { nodes, changes } = this.payload;
    this.firstChange = nodes.length;
    this.changesOf = new Map();
    changes.forEach((change, i) => {
      for (const node of change.nodes) {
        if (!this.changesOf.has(node)) this.changesOf.set(node, []);
        this.changesOf.get(node).push(this.firstChange + i);
      }
    });
  }

  below(id) {
    const { nodes } = this.payload;
    if (id >= nodes.length || nodes[id].leaf || nodes[id].kind === "call") return [id];
    const ids = [id];
    for (let i = id + 1; i < nodes.length && nodes[i].depth > nodes[id].depth; i++) ids.push(i);
    return ids;
  }

  header() {
    const { payload } = this;
    const facts = [counted(payload.calls, "call")];
    if (payload.calls) facts.push(`${payload.executable} executable`);
    facts.push(counted(payload.characters, "character"), `policy ${payload.policy}`);
    this.search = make("input", "tp-search", undefined, {
      type: "search",
      placeholder: "Search  /",
      "aria-label": "Search arguments and changes",
      autocomplete: "off",
      spellcheck: "false",
      input: () => this.find(),
    });
    this.found = make("span", "tp-found", "", { role: "status" });
    return make("div", "tp-head", [
      verdictBadge(payload.verdict),
      make("span", "tp-badge tp-plain", payload.protocol, { title: "protocol" }),
      make("span", "tp-facts", facts.join(" · ")),
      ...(payload.blame ? [make("span", "tp-blame", payload.blame)] : []),
      make("span", "tp-searchbox", [this.found, this.search]),
    ]);
  }

  textPane() {
    const tabs = this.payload.stages.map((stage, i) =>
      makeButton("tp-tab", [make("kbd", "tp-key", String(i + 1), { "aria-hidden": "true" }), STAGE_NAMES[stage.id]], () => this.setStage(stage.id), {
        role: "tab",
        id: `${this.uid}-tab-${stage.id}`,
        "aria-controls": `${this.uid}-text`,
        title: `key ${i + 1}`,
      }),
    );
    this.tabs = make("div", "tp-tabs", tabs, { role: "tablist", "aria-label": "Stage" });
    this.text = make("div", "tp-text", undefined, { role: "tabpanel", id: `${this.uid}-text`, tabindex: "0", ...this.hearers((target) => this.idAt(target)) });
    this.legend = make("div", "tp-legend");
    return make("section", "tp-pane", [this.tabs, this.text, this.legend], { "aria-label": "Text" });
  }

  /** The events by which a pane shows and pins what they are on; idAt says what that is, null for nothing new. */
  hearers(idAt) {
    const heard = (act) => (event) => {
      const id = idAt(event.target);
      if (id !== null) act(id);
    };
    const show = heard((id) => this.show(id));
    return { pointerover: show, focusin: show, click: heard((id) => this.pin(id)), pointerleave: () => this.show(this.pinned) };
  }

  /** The hearers of a pane whose entries are of one class. */
  hearersOf(selector) {
    return this.hearers((target) => {
      const entry = target.closest(selector);
      return entry && Number(entry.dataset.id);
    });
  }

  treePane() {
    const title = make("div", "tp-title", "Calls and arguments", { id: `${this.uid}-tree` });
    this.rows = this.payload.nodes.map((node, id) => this.row(node, id));
    const some = this.rows.length > 0;
    if (some) this.rows[0].tabIndex = 0;
    this.tree = make("div", "tp-tree", some ? this.rows : [make("p", "tp-note", this.payload.why)], {
      ...(some ? { role: "tree" } : {}),
      "aria-labelledby": `${this.uid}-tree`,
      ...this.hearersOf(".tp-row"),
    });
    return make("section", "tp-pane", [title, this.tree], { "aria-label": "Arguments" });
  }

  row(node, id) {
    const row = make("div", `tp-row tp-row-${node.kind === "call" ? "call" : node.leaf ? "leaf" : "box"}`, undefined, {
      role: "treeitem",
      "aria-level": String(node.depth + 1),
      "aria-selected": "false",
      tabindex: "-1",
      "data-id": String(id),
      "data-path": node.path,
    });
    row.classList.toggle("tp-grey", Boolean(node.grey));
    row.style.setProperty("--depth", String(Math.min(node.depth, 12)));
    row.append(make("span", "tp-rowkey", node.key));
    if (node.kind === "call") {
      row.append(verdictBadge(node.verdict));
      if (node.status !== "ok" && node.status !== node.verdict) row.append(make("span", "tp-badge tp-plain", node.text));
    } else {
      row.append(make("span", `tp-value tp-${node.kind}`, node.leaf || node.grey ? node.text : `${node.kind}, ${node.text}`));
      if (node.changed && node.leaf) row.append(make("span", "tp-letter tp-coerce", "C", { title: "coerced" }));
    }
    if (node.start >= 0) {
      const about = node.exact ? "" : "~";
      row.append(make("span", "tp-where", `${about}${node.start}–${node.end}`));
    }
    return row;
  }

  changePane() {
    this.cards = this.payload.changes.map((change, i) => this.card(change, this.firstChange + i));
    this.list = make("ul", "tp-changes", this.cards, this.hearersOf(".tp-card"));
    const none = this.payload.calls ? "Nothing was changed and nothing is wrong: the arguments are as found." : "There is no call to change.";
    const title = make("div", "tp-title", "Repairs, coercions, problems");
    const body = this.cards.length ? this.list : make("p", "tp-note", none);
    return make("section", "tp-pane tp-notes", [title, body], { "aria-label": "Repairs, coercions and problems" });
  }

  card(change, id) {
    const letter = make("span", `tp-letter tp-${change.kind}`, CHANGE_SIGNS[change.kind], { title: change.kind });
    const what = make("span", "tp-what");
    if (change.message !== undefined) {
      what.append(make("span", "", change.message));
    } else {
      if (change.before) what.append(make("del", "tp-before", change.before));
      if (change.kind === "repair" && !change.before) what.append(make("span", "tp-dim", "added"));
      if (change.before && change.after) what.append(make("span", "tp-dim", "→", { "aria-label": "becomes" }));
      if (change.after) what.append(make("ins", "tp-after", change.after));
      if (change.kind === "repair" && !change.after) what.append(make("span", "tp-dim", "dropped"));
    }
    const why = make("span", "tp-why", [make("span", "tp-rule", change.rule)]);
    if (change.message === undefined) {
      why.append(make("span", `tp-loss ${change.lossless ? "tp-good" : "tp-bad"}`, change.lossless ? "lossless" : "lossy"));
    }
    if (change.sentence) why.append(make("span", "tp-dim", change.sentence));
    const where = [change.path, change.start >= 0 ? placed(change.start, change.end) : ""].filter(Boolean).join(" · ");
    const parts = [letter, what, why, make("span", "tp-where", where)];
    return make("li", "tp-item", [make("button", "tp-card", parts, { type: "button", "data-id": String(id), "aria-pressed": "false" })]);
  }

  footer() {
    this.live = make("div", "tp-live", "", { role: "status", "aria-live": "polite" });
    const keys = keyLine("tp-keys", [["↑ ↓", "move"], ["Enter", "pin"], ["1–4", "stage"], ["/", "search"], ["Esc", "clear"]]);
    return make("div", "tp-foot", [this.live, keys]);
  }

  /** The sentence for the live region and for labels. */
  spoken(id) {
    if (id < 0) return "";
    const { nodes, changes } = this.payload;
    if (id >= this.firstChange) {
      const change = changes[id - this.firstChange];
      const what = change.message ?? `${change.before || "nothing"} becomes ${change.after || "nothing"}`;
      return `${change.kind} ${change.rule}: ${what}, ${placed(change.start, change.end)}`;
    }
    const node = nodes[id];
    if (node.kind === "call") return `call ${node.call}, ${node.key}, ${node.text}, ${placed(node.start, node.end)}`;
    const value = node.leaf ? `= ${node.text}` : `, ${node.kind} of ${node.text}`;
    const about = node.exact ? "" : "near ";
    return `argument ${node.path} ${value}, ${about}${placed(node.start, node.end)}`.replace(" ,", ",");
  }

  setStage(name, tell = true) {
    const stage = this.payload.stages.find((s) => s.id === name) ?? this.payload.stages[0];
    this.stage = stage.id;
    this.payload.stages.forEach((s, i) => {
      const tab = this.tabs.children[i];
      tab.setAttribute("aria-selected", String(s.id === stage.id));
      tab.tabIndex = s.id === stage.id ? 0 : -1;
    });
    this.text.setAttribute("aria-labelledby", `${this.uid}-tab-${stage.id}`);
    this.draw(stage);
    this.light(this.shown);
    if (tell) this.onStage(stage.id);
  }

  draw(stage) {
    const { kinds } = this.payload;
    const fragment = document.createDocumentFragment();
    this.markRuns = stage.marks.map(() => []);
    this.idMarks = new Map();
    this.stops = [];
    const seen = new Set();
    const stopped = new Set();
    stage.marks.forEach((mark, m) => {
      for (const id of mark.slice(2)) {
        if (!this.idMarks.has(id)) this.idMarks.set(id, []);
        this.idMarks.get(id).push(m);
      }
    });
    let hidden = 0;
    const put = (parent, start, end) => {
      let at = start;
      while (hidden < stage.hidden.length && stage.hidden[hidden + 1] <= start) hidden += 2;
      for (let h = hidden; h < stage.hidden.length && stage.hidden[h] < end; h += 2) {
        const from = Math.max(stage.hidden[h], at);
        const to = Math.min(stage.hidden[h + 1], end);
        if (from > at) parent.append(stage.text.slice(at, from));
        parent.append(make("span", "tp-hidden", stage.text.slice(from, to)));
        at = to;
      }
      if (at < end) parent.append(stage.text.slice(at, end));
    };
    for (let i = 0; i < stage.runs.length; ) {
      const [start, end, n] = stage.runs.slice(i, i + 3);
      const stack = stage.runs.slice(i + 3, i + 3 + n);
      i += 3 + n;
      if (!n) {
        put(fragment, start, end);
        continue;
      }
      const run = make("span", "tp-run");
      for (const m of stack) {
        run.classList.add(`tp-k-${kinds[stage.marks[m][0]]}`);
        seen.add(kinds[stage.marks[m][0]]);
        this.markRuns[m].push(run);
      }
      const inner = stack[n - 1];
      run.dataset.inner = kinds[stage.marks[inner][0]];
      if (start === end) run.classList.add("tp-point");
      run.title = stack.map((m) => stage.marks[m][1]).reverse().join("\n");
      const linked = [...stack].reverse().filter((m) => stage.marks[m].length > 2);
      // A complaint lies over the argument it is about, and pointing there means the argument.
      const source = linked.find((m) => kinds[stage.marks[m][0]] !== "problem") ?? linked[0];
      if (source !== undefined) {
        run.dataset.id = String(stage.marks[source][2]);
        if (!stopped.has(source)) {
          stopped.add(source);
          run.tabIndex = -1;
          run.setAttribute("role", "button");
          run.setAttribute("aria-pressed", "false");
          // Its name is the text it holds; the live region says the rest. Only an insertion point holds none.
          if (start === end) run.setAttribute("aria-label", this.spoken(stage.marks[source][2]));
          this.stops.push(run);
        }
      }
      put(run, start, end);
      fragment.append(run);
    }
    if (!stage.text) fragment.append(make("span", "tp-dim", stage.id === "raw" ? "The text is empty." : "No call, so there is nothing to show."));
    this.text.replaceChildren(fragment);
    this.text.scrollTop = 0;
    const shown = LEGEND.filter(([kind]) => seen.has(kind));
    this.legend.replaceChildren(...shown.map(([kind, word]) => make("span", `tp-run tp-k-${kind}`, word, { "data-inner": kind })));
  }

  idAt(target) {
    const run = target instanceof Element ? target.closest(".tp-run[data-id]") : null;
    return run && this.text.contains(run) ? Number(run.dataset.id) : this.pinned;
  }

  /** Light an entity while pointer or focus is on it; -1 lights nothing. */
  show(id) {
    if (id === this.shown) return;
    this.light(id);
    this.live.textContent = this.spoken(id);
  }

  light(id) {
    for (const element of this.root.querySelectorAll(".tp-lit")) element.classList.remove("tp-lit");
    this.shown = id;
    if (id < 0) return;
    const entities = new Set(this.below(id));
    const linked = new Set(entities);
    if (id >= this.firstChange) {
      for (const node of this.payload.changes[id - this.firstChange].nodes) {
        linked.add(node);
        // A repair or problem has characters of its own; a coercion has those of its argument.
        if (!this.idMarks.has(id)) for (const below of this.below(node)) entities.add(below);
      }
    } else {
      for (const entity of entities) for (const change of this.changesOf.get(entity) ?? []) linked.add(change);
    }
    let first = null;
    for (const entity of entities) {
      for (const m of this.idMarks.get(entity) ?? []) {
        for (const run of this.markRuns[m]) {
          run.classList.add("tp-lit");
          first ??= run;
        }
      }
    }
    for (const entity of linked) this.entry(entity)?.classList.add("tp-lit");
    if (first && !this.text.matches(":hover")) this.reveal(this.text, first);
    if (id < this.firstChange && !this.tree.matches(":hover")) this.reveal(this.tree, this.rows[id]);
  }

  /** Scroll a pane, and only the pane, until an element in it can be seen. */
  reveal(pane, element) {
    const outer = pane.getBoundingClientRect();
    const inner = element.getBoundingClientRect();
    if (inner.top < outer.top || inner.bottom > outer.bottom) {
      const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
      const top = pane.scrollTop + inner.top - outer.top - outer.height / 3;
      pane.scrollTo({ top, behavior: still ? "auto" : "smooth" });
    }
  }

  pin(id) {
    this.setPinned(id === this.pinned ? -1 : id);
    const node = this.payload.nodes[this.pinned];
    this.onPin(node ? node.path : "");
  }

  /** The row or the card of an entity. */
  entry(id) {
    return id < this.firstChange ? this.rows[id] : this.cards[id - this.firstChange]?.firstChild;
  }

  setPinned(id) {
    this.pinned = id;
    const mark = (element, on) => {
      element.classList.toggle("tp-pinned", on);
      element.setAttribute(element.hasAttribute("aria-selected") ? "aria-selected" : "aria-pressed", String(on));
    };
    for (const element of this.root.querySelectorAll(".tp-pinned")) mark(element, false);
    if (id >= 0) {
      mark(this.entry(id), true);
      for (const m of this.idMarks.get(id) ?? []) {
        const run = this.markRuns[m][0];
        run?.classList.add("tp-pinned");
        if (run?.hasAttribute("aria-pressed")) run.setAttribute("aria-pressed", "true");
      }
    }
    this.light(id);
    this.live.textContent = id >= 0 ? `pinned: ${this.spoken(id)}` : "";
  }

  /** Follow the kernel's `pinned`; what is pinned already stays, though another call may hold the same path. */
  pinPath(path) {
    if ((this.payload.nodes[this.pinned]?.path ?? "") === path) return;
    this.setPinned(path ? this.payload.nodes.findIndex((node) => node.path === path) : -1);
  }

  find() {
    const words = this.search.value.trim().toLowerCase();
    const { nodes, changes } = this.payload;
    const has = (...texts) => texts.some((t) => t && t.toLowerCase().includes(words));
    this.matches = [];
    nodes.forEach((node, id) => {
      const hit = words && has(node.kind === "call" ? node.key : node.path, node.leaf ? node.text : "");
      this.rows[id].classList.toggle("tp-hit", Boolean(hit));
      if (hit) this.matches.push(id);
    });
    changes.forEach((change, i) => {
      const hit = words && has(change.rule, change.before, change.after, change.message, change.path);
      this.cards[i].firstChild.classList.toggle("tp-hit", Boolean(hit));
      if (hit) this.matches.push(this.firstChange + i);
    });
    this.root.classList.toggle("tp-searching", Boolean(words));
    this.found.textContent = words ? counted(this.matches.length, "match").replace("matchs", "matches") : "";
    this.next = 0;
    if (this.matches.length) this.show(this.matches[0]);
  }

  clear() {
    this.search.value = "";
    this.find();
    this.setPinned(-1);
    this.onPin("");
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const done = () => {
      event.preventDefault();
      event.stopPropagation();
    };
    const { key } = event;
    if (key === "Escape") {
      this.clear();
      if (event.target === this.search) this.text.focus({ preventScroll: true });
      return done();
    }
    if (event.target === this.search) {
      event.stopPropagation();
      if (key === "Enter" && this.matches.length) {
        this.next = (this.next + (event.shiftKey ? this.matches.length - 1 : 1)) % this.matches.length;
        this.show(this.matches[this.next]);
        event.preventDefault();
      }
      return undefined;
    }
    if (key === "/") {
      this.search.focus({ preventScroll: true });
      return done();
    }
    const stage = this.payload.stages[Number(key) - 1];
    if (this.digits && /^[1-9]$/.test(key) && stage) {
      const wasInText = this.text.contains(event.target);
      this.setStage(stage.id);
      if (wasInText) this.text.focus({ preventScroll: true });
      return done();
    }
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[key];
    const edge = { Home: 0, End: -1 }[key];
    const moves = step !== undefined || edge !== undefined;
    const { target } = event;
    if (target.getAttribute?.("role") === "tab") {
      if (moves) {
        this.move([...this.tabs.children], target, step, edge).click();
        done();
      }
      return undefined;
    }
    // A card of the list is a button, which takes Enter and Space by itself.
    const inText = this.text.contains(target);
    if ((key === "Enter" || key === " ") && (inText || this.tree.contains(target)) && target.dataset.id) {
      this.pin(Number(target.dataset.id));
      return done();
    }
    const elements = inText ? this.stops : this.tree.contains(target) ? this.rows : this.list.contains(target) ? this.cards.map((item) => item.firstChild) : [];
    if (moves && elements.length) {
      this.move(elements, target, step, edge);
      return done();
    }
    return undefined;
  }

  /** Move focus within a list of elements; the one that is left can be tabbed back to. */
  move(elements, from, step, edge) {
    const at = elements.indexOf(from);
    let to = edge === undefined ? at + step : edge < 0 ? elements.length - 1 : 0;
    if (at < 0 && edge === undefined) to = step > 0 ? 0 : elements.length - 1;
    const element = elements[Math.min(Math.max(to, 0), elements.length - 1)];
    if (elements === this.rows) {
      if (at >= 0) from.tabIndex = -1;
      element.tabIndex = 0;
    }
    element.focus({ preventScroll: true });
    const pane = element.closest(".tp-text, .tp-tree, .tp-notes");
    if (pane) this.reveal(pane, element);
    return element;
  }
}

export function mount(root, payload, options) {
  return new View(root, payload, options);
}

function render({ model, el }) {
  let view;
  const keep = (name) => (value) => {
    model.set(name, value);
    model.save_changes();
  };
  const draw = () => {
    view = mount(el, model.get("_payload"), { stage: model.get("stage"), onStage: keep("stage"), onPin: keep("pinned") });
    view.pinPath(model.get("pinned"));
  };
  const onStage = () => {
    if (model.get("stage") !== view.stage) view.setStage(model.get("stage"), false);
  };
  draw();
  const still = document.getElementById(model.get("_static"));
  if (still) still.hidden = true;
  const stop = listen(model, { "change:_payload": draw, "change:stage": onStage, "change:pinned": () => view.pinPath(model.get("pinned")) });
  return () => {
    stop();
    if (still) still.hidden = false;
  };
}

export default { render };
