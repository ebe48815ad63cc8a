#!/usr/bin/env bash
# report.html, counters.html and the head's page in headless Chromium: drawn, filtered, downloaded, by
# keyboard, dark, on a phone, on paper, 2,048 ranks.
. "$(dirname "$0")/../../lib/case.sh"
. test/lib/browser.sh
for t in test_render test_counters_page; do
  [ -x "$BUILD/test/unit/$t" ] || skip "no $BUILD/test/unit/$t (make tests)"
done

# A figure that is not there is a dash, without a unit behind it.
node --input-type=module -e "
import { gbs, duration, percent, bytes, amount, bytesTick, count, short, unitFor } from '$PWD/exporter/output/report/src/format.js';
const got = [gbs(null), gbs(NaN), gbs(18.94), gbs(3.7e-5), gbs(0.0042), gbs(0), duration(null), percent(null)].join('|');
if (got !== '–|–|18.9 GB/s|37.0 kB/s|4.20 MB/s|0 GB/s|–|–') { console.log('figures as text:', got); process.exit(1); }
// One unit for all tics of an axis, chosen by the values, and never an exponent; numbers in groups of three.
const axis = (kind, log, ...values) => [unitFor(kind, values, log).name, ...[0, ...values].map(unitFor(kind, values, log).text)].join(' ');
const axes = [axis('gbs', false, 1e-5, 5e-5), axis('gbs', false, 5, 400), axis('gbs', true, 5e-5, 20), axis('us', false, 50, 2e6), axis('us', true, 1, 1e7),
  axis('us', false, 120e6, 480e6), axis('bytesPerS', false, 2e6, 1.5e9), axis('number', true, 1e3, 1e6), axis('number', false, 0.5, 4000)].join('|');
const texts = [count(1234567), short(54321), short(12345678), short(0.00000123)].join(' ');
if (axes !== 'kB/s 0 10 50|GB/s 0 5 400|MB/s 0 0.05 20,000|s 0 0.00005 2|ms 0 0.001 10,000|min 0 2 8|GB/s 0 0.002 1.5|k 0 1 1,000| 0 0.5 4,000' ||
    texts !== '1,234,567 54,321 12,345,678 0.00000123') {
  console.log('axes:', axes, 'texts:', texts); process.exit(1);
}
const sizes = [0, 4, 999, 1000, 8192, 999994, 999999, 1048576, 104857600];
const is = [sizes.map(bytes), sizes.map(amount), [1e6, 2.5e5].map(bytesTick)].map((x) => x.join(' ')).join('|');
if (is !== '0 B 4 B 999 B 1.00 kB 8.19 kB 999.99 kB 1.00 MB 1.05 MB 104.86 MB|0 B 4 B 999 B 1.0 kB 8.2 kB 1.0 MB 1.0 MB 1.0 MB 105 MB|1 MB 250 kB') {
  console.log('sizes as text:', is); process.exit(1);
}"

"$BUILD/test/unit/test_render" --page "$TMP/small" 2 11
"$BUILD/test/unit/test_render" --page "$TMP/big" 256 60
"$BUILD/test/unit/test_render" --page "$TMP/nothing" 0 0
"$BUILD/test/unit/test_render" --page "$TMP/steps" 2 11 300
node "$tool/report.mjs" "$TMP/small" "$TMP/big" "$TMP/nothing"
node "$tool/steps.mjs" "$TMP/steps" "$TMP/small"
"$BUILD/test/unit/test_counters_page" --page "$TMP/counters.html"
node "$tool/counters.mjs" "$TMP/counters.html"
python3 test/lib/head_mock.py "$BUILD/report" 5 sesame node "$tool/head.mjs" sesame ""
