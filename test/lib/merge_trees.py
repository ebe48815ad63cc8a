"""Random trees of merges: each ends in the same bytes. Usage: merge_trees.py INSPECTOR WORK TREES PART...

A tree takes parts at random, a few at a time, until one is left. The first one's is left in WORK/merged.
"""
import filecmp, os, random, subprocess, sys

inspector, work, trees, parts = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
draw = random.Random(len(parts))
first = os.path.join(work, "merged")
for k in range(trees):
    pool, made = list(parts), []
    while len(pool) > 1 or not made:
        some = [pool.pop(draw.randrange(len(pool))) for _ in range(min(len(pool), draw.randint(2, 12)))]
        to = os.path.join(work, "t%d-%d" % (k, len(made)))
        subprocess.run([inspector, "merge", "--partial", to, *some], check=True, stdout=subprocess.DEVNULL)
        made.append(to)
        pool.append(to)
    if k == 0:
        os.rename(made.pop(), first)
    elif not filecmp.cmp(first, made[-1], shallow=False):
        sys.exit("tree %d of %d parts is other bytes: %s" % (k, len(parts), made[-1]))
    for m in made:
        os.unlink(m)
