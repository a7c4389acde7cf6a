// Keeps an open page current: takes each part that the server renders anew and puts it in the place of the old one.
(() => {
  "use strict";
  const button = document.getElementById("live");
  const address = document.body.dataset.stream;
  if (!button || !address) return;
  let source = null, paused = false, over = false, retry = 0;

  const say = (state, text) => {
    button.className = "live " + state;
    button.querySelector("span").textContent = text;
  };

  // selected tells whether somebody is marking text in an element: it is left alone then.
  const selected = (element) => {
    const s = document.getSelection();
    return s && !s.isCollapsed && element.contains(s.anchorNode);
  };

  const replace = (next) => {
    const old = document.getElementById(next.id);
    if (!old || selected(old)) return;
    for (const d of old.querySelectorAll("details[open][id]")) {
      const same = next.querySelector("#" + CSS.escape(d.id));
      if (same) same.open = true;
    }
    // A few new rows are pointed out; where all are new there is nothing to point at.
    const rows = [...next.querySelectorAll("[data-row]")];
    const fresh = rows.filter((row) => !document.getElementById(row.id));
    if (fresh.length * 2 <= rows.length) for (const row of fresh) row.classList.add("fresh");
    const focus = old.contains(document.activeElement) ? document.activeElement.id : "";
    old.replaceWith(next);
    if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  };

  const close = () => {
    clearTimeout(retry);
    source?.close();
    source = null;
  };

  const open = () => {
    close();
    if (paused || over || document.hidden) return;
    say("", "connecting");
    source = new EventSource(address);
    source.addEventListener("part", (e) => {
      for (const next of [...new DOMParser().parseFromString(e.data, "text/html").body.children]) replace(next);
    });
    source.addEventListener("beat", () => say("on", "live"));
    source.addEventListener("bye", () => {
      over = true;
      close();
      location.reload();
    });
    source.onerror = () => {
      close();
      say("off", "reconnecting");
      retry = setTimeout(open, 2000);
    };
  };

  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    if (paused) {
      close();
      say("", "paused");
    } else open();
  });
  // A page that nobody sees needs no stream: browsers allow few connections to one server.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  open();
})();
