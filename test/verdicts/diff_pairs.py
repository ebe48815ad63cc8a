#!/usr/bin/env python3
"""How often does `diff` call rows changed where nothing was, and find what was planted?

pairs.py --jobs NI-JOBS --exporter NCCL-INSPECTOR --same 200 --planted 60 [--seed 1]
Same: a job against the same job with other draws (clocks, noise, GPUs). Planted: against one with a cause of
3 %.
"""
import argparse, json, re, shutil, subprocess, sys, tempfile
from pathlib import Path

LAYOUTS = 'ABCFDM'
PLANTED = [('late', layout, ['--kind', 'late', '--size', '3']) for layout in LAYOUTS] + \
          [('nvlink', layout, ['--kind', 'nvlink', '--size', '1.03']) for layout in 'ABC'] + \
          [('rail', layout, ['--kind', 'rail', '--size', '1.03']) for layout in 'AB'] + \
          [('compute', layout, ['--slower', '1.03']) for layout in LAYOUTS]


def make(o, where, layout, seed, draw, more):
    cmd = [o.jobs, '--layout', layout, '--seed', str(seed), '--draw', str(draw), '--out', str(where)]
    kind = [] if '--kind' in (more or []) else ['--kind', 'healthy']
    return subprocess.run(cmd + (more or []) + kind, stdout=subprocess.DEVNULL).returncode


def compare(o, a, b):
    out = subprocess.run([o.exporter, 'diff', '--json', str(a), str(b)], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    if out.returncode:
        return None, out.stderr.decode()
    return json.loads(out.stdout), ''


def found(what, d, truth):
    slower = [r for r in d['rows'] if r['verdict'] == 'slower']
    if what == 'compute':
        return any(r['name'] in ('compute', 'all ranks') for r in slower)
    c = truth['culprits'][0]
    if what == 'late':
        return any(r['kind'] == 'rank' and r['rank'] == c['rank'] for r in slower)
    names = [r['name'] for r in slower if r['kind'] in ('link', 'role')]
    at = {x['rank'] for x in truth['ranks'] if x['host'] == c.get('host')} if 'ranks' in truth else None
    first = lambda n: [int(x) for x in re.findall(r'\d+', n)]
    return any(not at or set(first(n)) & at for n in names)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--jobs', required=True)
    p.add_argument('--exporter', required=True)
    p.add_argument('--same', type=int, default=200)
    p.add_argument('--planted', type=int, default=60)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--verbose', action='store_true')
    o = p.parse_args()
    table = {}
    plan = [('same', LAYOUTS[i % len(LAYOUTS)], o.seed + i // len(LAYOUTS), None) for i in range(o.same)] + \
           [(*PLANTED[i % len(PLANTED)][:2], o.seed + 1000 + i // len(PLANTED), PLANTED[i % len(PLANTED)][2])
            for i in range(o.planted)]
    for what, layout, seed, more in plan:
        with tempfile.TemporaryDirectory() as t:
            a, b = Path(t, 'a'), Path(t, 'b')
            if make(o, a, layout, seed, 1, None) or make(o, b, layout, seed, 2, more):
                print(what, layout, seed, 'cannot be made', file=sys.stderr)
                continue
            d, why = compare(o, a, b)
            x = table.setdefault((what, layout), [0, 0, 0, 0])
            x[0] += 1
            if d is None:
                x[3] += 1
                print(what, layout, seed, why, end='', flush=True)
                continue
            rows = [(r['kind'], r['name'], f"{100 * r['change']:+.1f}") for r in d['rows']
                    if r['verdict'] in ('slower', 'faster')]
            if what == 'same':
                x[1] += bool(rows)
                if rows:
                    print('alarm', layout, seed, rows[:6], flush=True)
            else:
                truth = json.loads(Path(b, 'truth.json').read_text())
                ok = found(what, d, truth)
                x[1] += ok
                x[2] += sum(1 for r in d['rows'] if r['kind'] == 'rank' and
                            r['verdict'] in ('slower', 'faster')
                            and (what != 'late' or r['rank'] != truth['culprits'][0]['rank'])) if what != 'compute' else 0
                if not ok or o.verbose:
                    print('found' if ok else 'missed', what, layout, seed, rows[:4], d['verdict'], flush=True)
    for (what, layout), x in sorted(table.items()):
        print(f'| {what} | {layout} | {x[0]} | {x[1]} | {x[2]} | {x[3]} |')


main()
