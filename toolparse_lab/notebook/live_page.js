// The page of `toolparse open`: mounts the front end and carries its messages over HTTP.

import { keepTheme, mount } from "/front/screens.js";

const box = document.getElementById("view");
const KEPT = "toolparse-view";
const run = decodeURIComponent((location.pathname.match(/^\/run\/(.+)$/) || ["", ""])[1]);
let screen = null;
let last = Promise.resolve();

/** What is on the screen stays readable. */
function fail(text) {
  if (screen) screen.complain(text);
  else {
    box.innerHTML = '<p class="alert err" role="alert"></p>';
    box.firstChild.textContent = text;
  }
}

async function ask(path, options) {
  const answer = await fetch(path, options).catch(() => null);
  if (!answer) throw new Error("`toolparse open` has ended. What you see stays readable. Start it again with `toolparse open latest`.");
  // Another server at this address, or too many tabs: the place in the address brings it all back.
  if (answer.status === 410) location.reload();
  if (answer.status === 403) throw new Error("This tab belongs to an earlier `toolparse open`: use the address that it printed last.");
  const data = await answer.json();
  if (data.error && !data.html && data.seq === undefined) throw new Error(data.error);
  return data;
}

/** The place in the address: what is filtered and which answer is open. Back returns to the one before. */
const place = {
  write(parts, title, isNew) {
    const query = new URLSearchParams(parts).toString();
    const address = location.pathname + (query ? `?${query}` : "");
    document.title = title ? `${title} · toolparse` : "toolparse";
    if (address === location.pathname + location.search) return;
    if (isNew) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  },
};

/** One after the other, as a kernel answers. */
function send(message) {
  const body = JSON.stringify({ view: sessionStorage.getItem(KEPT + run), message });
  last = last.then(async () => {
    try {
      screen.hear(await ask("/answer", { method: "POST", body, headers: { "Content-Type": "application/json" } }));
    } catch (error) {
      fail(error.message);
    }
  });
}

// A large log takes a while the first time.
const clock = setInterval(() => ask("/reading").then(({ said }) => box.querySelector('p.empty[role="status"]')?.replaceChildren(said)).catch(() => {}), 400);
try {
  const query = new URLSearchParams({ view: sessionStorage.getItem(KEPT + run) || "", run, place: location.search.slice(1) });
  const first = await ask(`/first?${query}`);
  sessionStorage.setItem(KEPT + run, first.view);
  document.title = `${first.title} · toolparse`;
  screen = mount(box, { html: first.html, send, place });
  keepTheme(box.querySelector("[data-themes]"));
  const opened = box.querySelector('.opened [data-trial][aria-selected="true"]');
  screen.opened = new URLSearchParams(location.search).get("trial") || "";
  if (opened) screen.choose(screen.opened);
  addEventListener("popstate", () => screen.ask({ kind: "place", place: Object.fromEntries(new URLSearchParams(location.search)) }));
} catch (error) {
  fail(error.message);
}
clearInterval(clock);
