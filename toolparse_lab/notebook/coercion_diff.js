// Two readings of one text. Text only ever goes in through textContent; nothing here talks to a network.

function make(tag, className, text, attributes = {}) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// One column of a reading: a line for each change, or for its value where nothing was changed.
function cell(side, column) {
  const td = make("td");
  if (!side.changes.length) {
    if (column === "after") td.append(make("span", "tpd-value", side.value));
    return td;
  }
  for (const change of side.changes) {
    const line = make("div");
    if (column === "loss") {
      const [look, word] = change.lossless ? ["tp-good", "lossless"] : ["tp-bad", "lossy"];
      line.append(make("span", `tp-badge ${look}`, word));
    } else if (column === "rule") {
      line.append(make("span", "tpd-rule", change.rule, { title: change.sentence }));
    } else {
      line.append(make("span", `tpd-${column}`, change[column]));
    }
    td.append(line);
  }
  return td;
}

export function mount(root, payload, { pinned = 0, onPin = () => {} } = {}) {
  const view = make("div", "tp tpd");
  const head = make("div", "tp-head");
  payload.names.forEach((name, i) => {
    if (i) head.append(make("span", "tp-facts", "→"));
    head.append(make("b", "", name), make("span", "tp-badge tp-plain", payload.protocols[i]));
  });
  const differing = payload.rows.filter((row) => row.differs).length;
  head.append(make("span", "tp-facts", `${differing} of ${payload.rows.length} rows end with another value`));

  const text = make("div", "tp-text", undefined, { tabindex: "0", role: "region", "aria-label": "raw text" });
  const marks = [];
  for (const [piece, numbers] of payload.pieces) {
    const span = make("span", numbers.length ? "tpd-mark" : "", piece);
    if (numbers.length) {
      const number = numbers[numbers.length - 1];
      marks.push([span, numbers]);
      span.addEventListener("mouseenter", () => point(number));
      span.addEventListener("mouseleave", () => point(0));
      span.addEventListener("click", () => pin(number, true));
    }
    text.append(span);
  }

  const table = make("table", "tpd-table");
  const titles = make("tr");
  titles.append(make("th", "", "row"), make("th", "", "argument"));
  for (const name of payload.names) {
    for (const [i, word] of ["before", "after", "rule", "loss"].entries()) {
      titles.append(make("th", i ? "" : "tpd-first", i ? word : `${name}: ${word}`));
    }
  }
  const top = make("thead");
  top.append(titles);
  const body = make("tbody");
  const lines = new Map();
  for (const row of payload.rows) {
    const tr = make("tr", row.differs ? "tpd-differs" : "");
    const chooser = make("button", "tpd-number", `${row.number}${row.differs ? " ≠" : ""}`, {
      type: "button",
      title: row.place,
      "aria-pressed": "false",
      "aria-label": `row ${row.number}, ${row.argument}, ${row.place}`,
    });
    const first = make("td");
    first.append(chooser);
    tr.append(first, make("td", "tpd-argument", row.argument));
    for (const side of row.sides) {
      for (const column of ["before", "after", "rule", "loss"]) tr.append(cell(side, column));
    }
    tr.addEventListener("mouseenter", () => point(row.number));
    tr.addEventListener("mouseleave", () => point(0));
    tr.addEventListener("click", () => pin(row.number, false));
    chooser.addEventListener("focus", () => point(row.number));
    chooser.addEventListener("blur", () => point(0));
    lines.set(row.number, [tr, chooser]);
    body.append(tr);
  }
  table.append(top, body);
  const box = make("div", "tpd-box");
  box.append(table);
  if (payload.left_out) box.append(make("p", "tp-facts", `${payload.left_out} more rows`));
  view.append(head, text, box);
  root.replaceChildren(view);

  let pointed = 0;
  let chosen = pinned;

  function paint() {
    for (const [span, numbers] of marks) {
      span.classList.toggle("tpd-on", numbers.includes(pointed || chosen));
    }
    for (const [number, [tr, chooser]] of lines) {
      tr.classList.toggle("tpd-on", number === (pointed || chosen));
      chooser.setAttribute("aria-pressed", String(number === chosen));
    }
  }

  function point(number) {
    pointed = number;
    paint();
  }

  // A choice brings the other side into view; the same one again undoes it.
  function pin(number, fromText) {
    chosen = chosen === number ? 0 : number;
    paint();
    onPin(chosen);
    if (!chosen) return;
    const mark = marks.find(([, numbers]) => numbers.includes(number));
    const target = fromText ? lines.get(number)[0] : mark && mark[0];
    if (target) target.scrollIntoView({ block: "nearest" });
  }

  paint();
  return {
    show(number) {
      chosen = number;
      paint();
    },
  };
}

function render({ model, el }) {
  const hidden = document.getElementById(model.get("_static"));
  if (hidden) hidden.style.display = "none";
  let view;
  const draw = () => {
    view = mount(el, model.get("_payload"), {
      pinned: model.get("pinned"),
      onPin(number) {
        model.set("pinned", number);
        model.save_changes();
      },
    });
  };
  const follow = () => view.show(model.get("pinned"));
  draw();
  model.on("change:_payload", draw);
  model.on("change:pinned", follow);
  return () => {
    model.off("change:_payload", draw);
    model.off("change:pinned", follow);
  };
}

export default { render };
