// Shows what the server pushes, and opens it. It keeps no page: the inbox is
// never shown from memory.
"use strict";
addEventListener("install", () => { skipWaiting(); });
addEventListener("activate", (e) => { e.waitUntil(clients.claim()); });

// A link is opened here, whatever host the message names.
const here = (link) => {
  try { const u = new URL(link, registration.scope); return new URL(u.pathname + u.search, location.origin).href; } catch { return registration.scope; }
};

addEventListener("push", (e) => {
  let m = {};
  try { m = e.data.json(); } catch { /* an empty message still says that something waits */ }
  e.waitUntil(registration.showNotification(String(m.title || "Something waits for you"), {
    body: String(m.body || ""), tag: String(m.tag || "ringi"), renotify: true, data: { url: here(m.url || "./") },
    icon: new URL("icon/192.png", registration.scope).href, badge: new URL("icon/badge.png", registration.scope).href,
  }));
});

addEventListener("notificationclick", (e) => {
  e.notification.close();
  const url = e.notification.data.url;
  e.waitUntil((async () => {
    for (const c of await clients.matchAll({ type: "window", includeUncontrolled: true })) if (c.url === url) return c.focus();
    return clients.openWindow(url);
  })());
});
