// report.html: order of the page, theme, printing.
import { byId, el, announce } from './dom.js';
import { theme } from './charts.js';
import { head, completeness, whereTimeWent } from './overview.js';
import { findings } from './findings.js';
import { bandwidthBySize } from './size.js';
import { rankByTime } from './heat.js';
import { outlierTable } from './outliers.js';
import { oneGroup } from './group.js';
import { allTables } from './tables.js';

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

byId('nav').append(el('ul', {}, ...[...document.querySelectorAll('main section')].map((section) =>
  el('li', {}, el('a', { href: `#${section.id}`, text: section.querySelector('h2').textContent })))));

// A defect in one part must not take the others with it.
for (const [id, part] of [['s-complete', head], ['s-complete', completeness], ['s-time', findings], ['s-time', whereTimeWent], ['s-size', bandwidthBySize],
  ['s-heat', rankByTime], ['s-outliers', outlierTable], ['s-group', oneGroup], ['s-table', allTables]]) {
  try {
    part();
  } catch (error) {
    console.error(error);
    byId(id).append(el('p', { class: 'badtext', text: `This part could not be shown: ${error.message}` }));
  }
}
