#include "correct_clocks.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/model/sums/team/team.h"
#include "turns.h"

static void wire_clocks(struct ni_wire *w, void *clocks) { ni_clocks_wire(w, clocks); }

static void assign_clocks(struct ni_run *r) {
  for (uint32_t i = 0; i < r->who.n_processes; i++) {
    struct ni_sum_process *p = &r->process[i];
    p->clock = ni_clocks_of(&r->clocks, r->files.file[p->file].run, ni_name_text(&r->names, p->host));
  }
}

static void correct_marks(struct ni_run *r) {
  for (size_t i = 0; i < r->marks.n_lines; i++) {
    struct ni_step_mark_line *m = &r->marks.line[i];
    const struct ni_host_clock *c = r->process[m->key >> 32].clock;
    if (c)
      m->ns = ni_clock_right(c, NULL, 0, m->ns);
  }
}

struct ni_stream_clock ni_stream_clock(const struct ni_run *r, uint32_t member,
                                       const struct ni_sum_cell *cell) {
  const struct ni_host_clock *clock = r->process[r->who.member[member].process].clock;
  const struct ni_turns_stream stream = {.member = member, .func = cell->func, .kind = cell->kind};
  return (struct ni_stream_clock){ni_stamps_of(&r->stamps, member), clock,
                                  clock ? ni_turns_of(&r->turns, &stream) : NULL};
}

/* What is left of the records' times once they are right. */
struct span {
  int64_t first_us, last_us;
};

static int widen_span_by_piece(struct ni_run *r, const struct ni_sum_cell *c, const struct ni_piece *p,
                               struct span *s) {
  const struct ni_stream_clock clock = ni_stream_clock(r, p->member, c);
  struct ni_segment_reader reader;
  struct ni_entry x;
  int e;
  ni_segment_read(&reader, &p->s, &r->store);
  while ((e = ni_segment_next(&reader, &x)) > 0) {
    ni_correct_entry(&clock, p, &x);
    const bool started = x.start_ns != NI_NO_START;
    const int64_t time_us = started ? x.start_ns / 1000 : (int64_t)x.dump_us;
    const int64_t end_us = started ? (x.start_ns + (int64_t)x.exec_ns) / 1000 : time_us;
    if (time_us < s->first_us)
      s->first_us = time_us;
    if (end_us > s->last_us)
      s->last_us = end_us;
  }
  ni_segment_read_end(&reader);
  return e;
}

/*
 * The run's first and last moment were found by clocks that were not right. Sums by time begin with the first
 * record then.
 */
static int correct_tally(struct ni_run *r) {
  struct span s = {INT64_MAX, INT64_MIN};
  int e = 0;
  for (uint32_t i = 0; i < r->n_cells; i++)
    for (size_t k = 0; e == 0 && k < r->cell[i].n; k++)
      e = widen_span_by_piece(r, &r->cell[i], r->cell[i].piece[k], &s);
  if (r->team) {
    uint64_t v[] = {(uint64_t)s.first_us, UINT64_MAX / 2 - (uint64_t)s.last_us};
    r->team->least(v, 2);
    s = (struct span){(int64_t)v[0], (int64_t)(UINT64_MAX / 2 - v[1])};
  }
  if (e < 0 || s.first_us > s.last_us)
    return e;
  r->tally.first_us = s.first_us;
  r->tally.last_us = s.last_us;
  r->tally.origin_ns = s.first_us * 1000;
  return 0;
}

int ni_correct_clocks(struct ni_run *r) {
  const bool root = !r->team || r->team->rank == 0;
  if (r->opt.compat)
    return 0; /* NVIDIA's exporter takes times as they are */
  int e = root ? ni_clocks_of_ledger(&r->clocks, &r->ledger) : 0;
  if (e == 0 && r->team)
    e = ni_team_share(r->team, wire_clocks, &r->clocks);
  /* Sums of whole logs are in the index as their hosts have them. */
  if (e < 0 || r->opt.approximate)
    return e;
  if (r->clocks.any) {
    assign_clocks(r);
    correct_marks(r);
  }
  e = ni_stamps_find(r);
  if (e == 0 && r->clocks.any)
    e = ni_turns_find(r);
  return e == 0 && (r->clocks.any || r->stamps.units.n) ? correct_tally(r) : e;
}
