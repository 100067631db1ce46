// Follows the page inside the frame: when readers go on to another one, banner and address go with them.
'use strict';
(() => {
  const frame = document.getElementById('page');
  const shown = () => {
    try {
      const { pathname, search, origin } = frame.contentWindow.location;
      if (origin !== location.origin) return null;
      const parts = /^(\/[^/]+\/\d*)(?:mp_|if_|fr_)(\/.*)$/.exec(pathname + search);
      return parts && parts[1] + parts[2];
    } catch {
      return null;
    }
  };
  frame.addEventListener('load', async () => {
    const top = shown();
    if (!top || top === location.pathname + location.search) return;
    const answer = await fetch(top, { credentials: 'omit' });
    if (!answer.ok || shown() !== top) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const banner = page.getElementById('banner');
    if (!banner) return;
    document.getElementById('banner').replaceWith(banner);
    document.title = page.title;
    history.replaceState(null, '', top);
  });
})();
