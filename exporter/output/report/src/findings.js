// What a reader should look at first, in sentences. The judgement is the summary's; here it is only shown.
import { page } from './data.js';
import { byId, el, replace } from './dom.js';
import { count } from './format.js';

export function findings() {
  const more = page.findings_left_out, all = page.findings_of_all;
  replace(byId('findings'), page.findings.length
    ? el('ul', {}, ...page.findings.map((text) => el('li', { text: `${text}.` })), more
      ? el('li', { class: 'dim', text: `${count(more)} more: see the tables "Ranks", "Communicators" and "Hosts".` }) : null)
    : el('p', { class: 'none', text: 'No rank, host or communicator stands out.' }),
  all ? el('p', { text: `${all[0].toUpperCase()}${all.slice(1)}.` }) : null,
  el('p', { class: 'note', text: `${page.findings_rules[0].toUpperCase()}${page.findings_rules.slice(1)}.` }));
}
