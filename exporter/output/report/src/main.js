// All pages: theme, printing, and the parts of the one that this is.
import { byId, el, announce } from './dom.js';
import { theme } from './charts.js';

const preferred = matchMedia('(prefers-color-scheme: dark)');
let chosen = null; // by the switch; until then the system's wish holds
function applyTheme() {
  const dark = chosen === null ? preferred.matches : chosen;
  theme(dark);
  const button = byId('theme');
  button.textContent = dark ? 'Light' : 'Dark';
  button.setAttribute('aria-pressed', String(dark));
  button.setAttribute('aria-label', dark ? 'Switch to light colours' : 'Switch to dark colours');
}
preferred.addEventListener('change', applyTheme);
byId('theme').addEventListener('click', () => {
  chosen = document.documentElement.dataset.theme !== 'dark';
  applyTheme();
  announce(chosen ? 'Dark colours' : 'Light colours');
});
byId('print').addEventListener('click', () => print());
applyTheme();

byId('nav').append(
  el(
    'ul',
    {},
    ...[...document.querySelectorAll('main section')].map((section) =>
      el('li', {}, el('a', { href: `#${section.id}`, text: section.querySelector('h2').textContent }))
    )
  )
);

// A defect in one part must not take the others with it. What a page does not need is not run.
const page =
  {
    counters: () => import('./counters.js'),
    diff: () => import('./diff.js'),
    head: () => import('./head.js'),
  }[document.body.id] || (() => import('./report.js'));
page().then(({ parts }) => {
  for (const [id, part] of parts) {
    try {
      part();
    } catch (error) {
      console.error(error);
      byId(id).append(el('p', { class: 'badtext', text: `This part could not be shown: ${error.message}` }));
    }
  }
});
