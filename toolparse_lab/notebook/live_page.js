// The page of `toolparse open`: mounts a widget's front end and carries its messages over HTTP.

const box = document.getElementById("view");
const heading = document.getElementById("title");
const KEPT = "toolparse-view";
const run = decodeURIComponent((location.pathname.match(/^\/run\/(.+)$/) || ["", ""])[1]);

function fail(text) {
  const words = document.createElement("p");
  words.setAttribute("role", "alert");
  words.textContent = text;
  box.replaceChildren(words);
}

async function ask(path, options) {
  const answer = await fetch(path, options).catch(() => null);
  if (!answer) throw new Error("`toolparse open` has ended: start it again, then load this page anew.");
  // Another server at this address, or too many tabs: the place in the address brings it all back.
  if (answer.status === 410) location.reload();
  if (answer.status === 403) throw new Error("This tab belongs to an earlier `toolparse open`: use the address that it printed last.");
  const data = await answer.json();
  if (data.error && !data.kind) throw new Error(data.error);
  return data;
}

/** The place in the address: what is filtered and which trial is open. Back returns to the one before. */
const place = {
  read: () => Object.fromEntries(new URLSearchParams(location.search)),
  write(parts, title, isNew) {
    const query = new URLSearchParams(Object.entries(parts).filter(([, value]) => value)).toString();
    const address = location.pathname + (query ? `?${query}` : "");
    document.title = title ? `${title} · toolparse` : "toolparse";
    if (address === location.pathname + location.search) return;
    if (isNew) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  },
  onBack: (act) => addEventListener("popstate", () => act(place.read())),
};

/** What a front end takes for anywidget's model. */
class Model {
  constructor(view, values) {
    this.view = view;
    this.values = values;
    this.hearers = [];
    this.last = Promise.resolve();
  }

  get(name) {
    return this.values[name];
  }

  on(name, hear) {
    if (name === "msg:custom") this.hearers.push(hear);
  }

  off(name, hear) {
    this.hearers = this.hearers.filter((other) => other !== hear);
  }

  /** One after the other, as a kernel answers. */
  send(message) {
    const body = JSON.stringify({ view: this.view, message });
    this.last = this.last.then(async () => {
      try {
        const reply = await ask("/answer", { method: "POST", body, headers: { "Content-Type": "application/json" } });
        if (reply) for (const hear of this.hearers) hear(reply);
      } catch (error) {
        fail(error.message);
      }
    });
  }
}

try {
  const query = new URLSearchParams({ view: sessionStorage.getItem(KEPT + run) || "", run });
  const first = await ask(`/first?${query}`);
  sessionStorage.setItem(KEPT + run, first.view);
  const style = document.createElement("style");
  style.textContent = first.style;
  document.head.append(style);
  const module = await import(URL.createObjectURL(new Blob([first.module], { type: "text/javascript" })));
  heading.textContent = first.values._first?.title || first.values._state?.view?.title || "Workbench";
  document.title = `${heading.textContent} · toolparse`;
  module.default.render({ model: new Model(first.view, first.values), el: box, place });
} catch (error) {
  fail(error.message);
}
