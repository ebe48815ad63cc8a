/* The agent's state: what batches add up to, what is refused, what time takes away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "exporter/model/live/live_tick.h"
#include "live_made.h"

static void adds_up(void **state) {
  (void)state;
  struct ni_live l = {0};
  struct ni_live_counts c[3] = {counts(who("77", "dp0", 0), "AllReduce", 3),
                                counts(who("77", "dp0", 1), "AllReduce", 4),
                                counts(who("77", "dp0", 0), "SendRecv", 5)};
  struct ni_live_batch b = logs(1, 0, 500, "77");
  b.counts = c;
  b.n_counts = 3;
  assert_int_equal(ni_live_apply(&l, &b, T(0), S), 0);
  b.file.from = 500;
  b.file.to = 900;
  b.n_counts = 1;
  assert_int_equal(ni_live_apply(&l, &b, T(1), 2 * S), 0);
  assert_int_equal(l.n_jobs, 1);
  assert_int_equal(l.n_members, 2);
  assert_int_equal(l.n_funcs, 3);
  assert_int_equal(l.n_classes, 2);
  assert_int_equal(l.func[0].n, 6);
  assert_int_equal(l.func[0].bus_bytes, 6 << 21);
  assert_int_equal(l.func[1].n, 4);
  assert_int_equal(l.class[0].timed, 10);
  assert_int_equal(l.class[0].took[4], 10);
  assert_true(l.class[0].bus_sum == 25e9);
  assert_int_equal(l.totals.lines, 20);
  assert_int_equal(l.began_ns, T(0));
  assert_int_equal(ni_live_file_of(&l, 1, 1)->to, 900);
  assert_null(ni_live_file_of(&l, 1, 2));
  /* Nothing counts twice: the same piece again, or a piece that leaves one out. */
  assert_int_equal(ni_live_apply(&l, &b, T(1), 2 * S), -ESTALE);
  b.file.from = 901;
  assert_int_equal(ni_live_apply(&l, &b, T(1), 2 * S), -ESTALE);
  b.file.from = 0;
  assert_int_equal(ni_live_apply(&l, &b, T(1), 2 * S), -ESTALE);
  assert_int_equal(l.func[0].n, 6);
  assert_int_equal(l.totals.lines, 20);
  b.file.head_hash++; /* another file with the inode of one that is gone */
  assert_int_equal(ni_live_apply(&l, &b, T(1), 2 * S), 0);
  assert_int_equal(l.func[0].n, 9);
  ni_live_free(&l);
}

/*
 * Roll-ups tell of operations that have no record: whoever knows of more counts, so that nothing counts
 * twice.
 */
static void rolled(void **state) {
  (void)state;
  struct ni_live l = {0};
  struct ni_live_counts c = counts(who("77", "dp0", 0), "AllReduce", 30),
                        none = counts(c.who, "AllReduce", 0);
  struct ni_live_batch b = logs(1, 0, 1, "77");
  /* rolled, records, all */
  const uint64_t told[][3] = {{0, 30, 30}, {20, 0, 30}, {100, 0, 120}, {0, 30, 120}, {10, 0, 130}};
  b.n_counts = 1;
  for (size_t i = 0; i < 5; i++, b.file.from++, b.file.to++) {
    b.counts = told[i][1] ? &c : &none;
    b.counts->rolled = told[i][0];
    b.counts->rolled_bytes = told[i][0] << 20;
    assert_int_equal(ni_live_apply(&l, &b, T(0), S), 0);
    assert_int_equal(l.func[0].n, told[i][2]);
    assert_int_equal(l.func[0].bytes, told[i][2] << 20);
  }
  assert_int_equal(l.func[0].timed, 60);
  ni_live_free(&l);
}

static void accounts(void **state) {
  (void)state;
  struct ni_live l = {0};
  struct ni_live_account a = {.who = who("77", "dp0", 0), .hash = 5, .begins = true};
  struct ni_live_batch b = logs(1, 0, 1, "77");
  b.accounts = &a;
  b.n_accounts = 1;
#define TELL(start, write, drop) \
  a.started = start, a.written = write, a.dropped[NI_DROP_POOL_FULL] = drop; \
  assert_int_equal(ni_live_apply(&l, &b, T(0), S), 0); \
  b.file.from++, b.file.to++, a.begins = false
  TELL(0, 0, 0);
  TELL(10, 8, 1);
  assert_int_equal(l.member[0].started, 10);
  TELL(15, 12, 1);
  assert_int_equal(l.member[0].started, 15);
  assert_int_equal(l.member[0].written, 12);
  assert_int_equal(l.member[0].dropped[NI_DROP_POOL_FULL], 1);
  a.begins = true; /* the same communicator again */
  TELL(0, 0, 0);
  TELL(20, 20, 0);
  assert_int_equal(l.member[0].started, 35);
  TELL(4, 3, 2); /* fell: the line that says that it begins was lost */
  assert_int_equal(l.member[0].started, 39);
  assert_int_equal(l.member[0].written, 35);
  assert_int_equal(l.member[0].dropped[NI_DROP_POOL_FULL], 3);
  assert_int_equal(l.n_lives, 1);
  a.hash = 6; /* another communicator of that name */
  TELL(2, 2, 0);
  assert_int_equal(l.member[0].started, 41);
  assert_int_equal(l.n_members, 1);
  assert_int_equal(l.n_lives, 2);
  ni_live_free(&l);
}

/* At so many seconds of the clock that nobody sets; the other one was set by so many. */
static void look_set(struct ni_live *l, struct ni_live_process *p, uint32_t n, struct ni_live_open *o,
                     uint32_t n_open, uint64_t s, int64_t set) {
  struct ni_live_batch b = {
      .kind = NI_LIVE_LOOK, .uid = 1001, .processes = p, .n_processes = n, .open = o, .n_open = n_open};
  assert_int_equal(ni_live_apply(l, &b, T((int64_t)s + set), s * S), 0);
}
static void look(struct ni_live *l, struct ni_live_process *p, uint32_t n, struct ni_live_open *o,
                 uint32_t n_open, uint64_t s) {
  look_set(l, p, n, o, n_open, s, 0);
}

static void looks(void **state) {
  (void)state;
  struct ni_live l = {0};
  struct ni_live_process p[2] = {process("77", 0, NI_LIFE_ALIVE), process("77", 1, NI_LIFE_UNKNOWN)};
  struct ni_live_open o = {.who = who("77", "dp0", 0), .in_flight = 2, .stuck = 1};
  look(&l, p, 2, &o, 1, 10);
  assert_int_equal(l.n_looks, 1);
  assert_int_equal(l.job[0].alive, 2);
  assert_true(l.job[0].stuck);
  look(&l, p, 2, &o, 1, 70); /* the second one gave no sign for a minute */
  assert_int_equal(l.n_looks, 1);
  assert_int_equal(l.job[0].alive, 1);
  struct ni_live_hang h = {.job = "77", .attempt = "0", .sentence = "rank 1 did not come"};
  struct ni_live_batch b = {.kind = NI_LIVE_LOOK,
                            .uid = 1001,
                            .processes = p,
                            .n_processes = 2,
                            .open = &o,
                            .n_open = 1,
                            .hangs = &h,
                            .n_hangs = 1};
  assert_int_equal(ni_live_apply(&l, &b, T(71), 71 * S), 0);
  assert_string_equal(l.job[0].hang.sentence, "rank 1 did not come");
  assert_int_equal(l.job[0].hang_ns, T(71));
  o.stuck = 0;
  look(&l, p, 2, &o, 1, 72);
  assert_false(l.job[0].stuck);
  assert_int_equal(l.job[0].hang.job[0], 0); /* it was stuck here, and is not any more */
  p[0].life = NI_LIFE_DEAD;
  o.stuck = 1;
  look(&l, p, 2, &o, 1, 73);
  assert_int_equal(l.job[0].alive, 0);
  assert_false(l.job[0].stuck);
  assert_int_equal(l.job[0].ended_ns, 73 * S);
  look_set(&l, p, 2, &o, 1, 74, 86400); /* the clock is set by a day, which makes nothing older */
  assert_int_equal(l.job[0].ended_ns, 73 * S);
  assert_false(ni_live_tick(&l, (73 + 599) * S, 600 * S));
  assert_true(ni_live_tick(&l, (73 + 600) * S, 600 * S));
  assert_int_equal(l.n_jobs, 0);
  look(&l, p, 2, &o, 1, 800); /* boxes of the dead lie there for days: they bring no job back */
  assert_int_equal(l.n_jobs, 0);
  look(&l, NULL, 0, NULL, 0, 801); /* the user has nothing here any more */
  assert_int_equal(l.n_looks, 0);
  ni_live_free(&l);
}

/*
 * A process that cannot be judged lives by its signs of life: so many seconds after they came, whatever
 * clocks they have.
 */
static void signs(void **state) {
  (void)state;
  struct ni_live l = {0};
  struct ni_live_process p[2] = {process("77", 0, NI_LIFE_UNKNOWN), process("77", 1, NI_LIFE_UNKNOWN)};
  p[1].sign_ns = T(-50);
  look(&l, p, 2, NULL, 0, 5);
  assert_int_equal(l.job[0].alive, 2);
  look_set(&l, p + 1, 1, NULL, 0, 9, 86400); /* one that was seen before, at another place */
  assert_int_equal(l.job[0].alive, 1);
  look_set(&l, p + 1, 1, NULL, 0, 10, 86400);
  assert_int_equal(l.job[0].alive, 0);
  p[1].sign_ns = T(86410);
  look_set(&l, p, 2, NULL, 0, 11, 86400); /* rank 0 is new, and its sign is of yesterday */
  assert_int_equal(l.job[0].alive, 1);
  look_set(&l, p, 2, NULL, 0, 70, -86400);
  assert_int_equal(l.job[0].alive, 1);
  look_set(&l, p, 2, NULL, 0, 71, -86400);
  assert_int_equal(l.job[0].alive, 0);
  ni_live_free(&l);
}

/* Three jobs; the middle one goes, and what the others have is found and counted on. */
static void goes(void **state) {
  (void)state;
  struct ni_live l = {0};
  static const char *const name[] = {"1", "2", "3"};
  struct ni_live_process p[2] = {process("1", 0, NI_LIFE_ALIVE), process("3", 0, NI_LIFE_ALIVE)};
  for (uint64_t turn = 0; turn < 2; turn++) {
    for (uint64_t j = 0; j < 3; j++) {
      struct ni_live_counts c[2] = {counts(who(name[j], "dp0", 0), "AllReduce", j + 1),
                                    counts(who(name[j], "", 1), "Broadcast", 1)};
      struct ni_live_account a = {.who = who(name[j], "dp0", 0), .hash = 5, .started = 10 * (turn + 1)};
      struct ni_live_batch b = logs(j, turn, turn + 1, name[j]);
      b.counts = c;
      b.n_counts = 2;
      b.accounts = &a;
      b.n_accounts = 1;
      if (turn == 0 || j != 1)
        assert_int_equal(ni_live_apply(&l, &b, T(0), S), 0);
    }
    if (turn)
      break;
    look(&l, p, 2, NULL, 0, 2);
    ni_live_tick(&l, 60 * S, 600 * S);
    assert_int_equal(l.job[1].ended_ns, 0);
    ni_live_tick(&l, 61 * S, 600 * S); /* no box, and its log is quiet: over since it was written last */
    assert_int_equal(l.job[1].ended_ns, S);
    assert_true(ni_live_tick(&l, 601 * S, 600 * S));
    assert_int_equal(l.n_jobs, 2);
    assert_int_equal(l.n_members, 4);
    assert_int_equal(l.n_funcs, 4);
    assert_int_equal(l.n_classes, 4);
    assert_int_equal(l.n_lives, 2);
    assert_int_equal(l.n_files, 3); /* would be read again from its beginning if it grew */
  }
  assert_int_equal(l.n_jobs, 2);
  assert_int_equal(l.n_members, 4);
  assert_int_equal(l.n_funcs, 4);
  assert_int_equal(l.n_lives, 2);
  const struct ni_live_job *third = ni_live_job_of(&l, "3", "0", 1001);
  assert_ptr_equal(third, &l.job[1]);
  assert_int_equal(l.member[l.func[2].member].job, 1);
  assert_int_equal(l.func[2].n, 6);
  assert_int_equal(l.member[2].started, 20);
  assert_true(ni_live_tick(&l, 1201 * S, 600 * S));
  assert_int_equal(l.n_files, 2);
  assert_null(ni_live_file_of(&l, 1, 1));
  assert_int_equal(ni_live_file_of(&l, 1, 2)->to, 2);
  ni_live_free(&l);
}

/*
 * A job goes on for days, and its processes do not: what one left goes once it said its last and no box of
 * its number lives.
 */
static void processes_go(void **state) {
  (void)state;
  struct ni_live l = {0};
  struct ni_live_account a = {.who = who("1", "dp0", 0), .hash = 5, .started = 7};
  struct ni_live_process p[2] = {process("1", 0, NI_LIFE_ALIVE), process("1", 1, NI_LIFE_ALIVE)};
  /* 1 and 2: parts of one log; 3: was killed; 4: of a process that has a box yet */
  for (uint64_t ino = 1; ino <= 4; ino++) {
    struct ni_live_batch b = logs(ino, 0, 1, "1");
    b.accounts = &a;
    b.n_accounts = 1;
    if (ino == 2)
      b.file.pid = 1001;
    if (ino == 4)
      p[1].pid = b.file.pid;
    b.file.ended = ino % 2 == 0;
    assert_int_equal(ni_live_apply(&l, &b, T(0), S), 0);
  }
  assert_int_equal(l.n_lives, 3);
  l.job[0].looked = true; /* as after a restart */
  ni_live_tick(&l, 1201 * S, 2000 * S);
  assert_int_equal(l.n_files, 4); /* nobody has looked */
  look(&l, p, 2, NULL, 0, 1201);
  assert_false(ni_live_tick(&l, 2000 * S, 2000 * S));
  assert_true(ni_live_tick(&l, 2001 * S, 2000 * S));
  ni_live_tick(&l, 2002 * S, 2000 * S);
  assert_int_equal(l.n_jobs, 1);
  assert_int_equal(l.n_files, 2);
  assert_int_equal(l.n_lives, 2);
  assert_null(ni_live_file_of(&l, 1, 1));
  assert_null(ni_live_file_of(&l, 1, 2));
  assert_int_equal(ni_live_file_of(&l, 1, 4)->to, 1);
  struct ni_live_batch b = logs(4, 1, 2, "1"); /* its life is known: the same number adds nothing */
  b.accounts = &a;
  b.n_accounts = 1;
  assert_int_equal(ni_live_apply(&l, &b, T(2001), 2002 * S), 0);
  assert_int_equal(l.member[0].started, 21);
  ni_live_free(&l);
}

/*
 * Nothing is stuck here, where the missing rank is: the verdict stays until it has moved, or nobody tells it
 * any more.
 */
static void hangs_elsewhere(void **state) {
  (void)state;
  struct ni_live l = {0};
  struct ni_live_process p[1] = {process("77", 0, NI_LIFE_ALIVE)};
  struct ni_live_hang h = {.job = "77", .attempt = "0", .sentence = "rank 0 did not come"};
  struct ni_live_batch told = {
      .kind = NI_LIVE_LOOK, .uid = 1001, .processes = p, .n_processes = 1, .hangs = &h, .n_hangs = 1};
  struct ni_live_counts c = counts(who("77", "dp0", 0), "AllReduce", 10);
  struct ni_live_batch b = logs(1, 0, 1, "77");
  b.counts = &c;
  b.n_counts = 1;
  look(&l, p, 1, NULL, 0, 10);
  assert_int_equal(ni_live_apply(&l, &told, T(100), 100 * S), 0);
  assert_int_equal(ni_live_apply(&l, &b, T(104), 104 * S), 0); /* of before */
  look(&l, p, 1, NULL, 0, 699);
  assert_string_equal(l.job[0].hang.sentence, "rank 0 did not come");
  look_set(&l, p, 1, NULL, 0, 699, -700); /* the clock was set back */
  assert_string_equal(l.job[0].hang.sentence, "rank 0 did not come");
  look(&l, p, 1, NULL, 0, 700);
  assert_int_equal(l.job[0].hang.job[0], 0);
  assert_int_equal(ni_live_apply(&l, &told, T(800), 800 * S), 0);
  b.file.from = 1;
  b.file.to = 2;
  assert_int_equal(ni_live_apply(&l, &b, T(806), 806 * S), 0);
  look(&l, p, 1, NULL, 0, 807);
  assert_int_equal(l.job[0].hang.job[0], 0);
  assert_int_equal(ni_live_apply(&l, &told, T(900), 900 * S), 0);
  p[0].life = NI_LIFE_DEAD;
  look(&l, p, 1, NULL, 0, 901);
  assert_int_equal(l.job[0].hang.job[0], 0);
  ni_live_free(&l);
}

static void rates(void **state) {
  (void)state;
  struct ni_live l = {0};
  struct ni_live_counts c = counts(who("77", "dp0", 0), "AllReduce", 1000);
  struct ni_live_batch b = logs(1, 0, 1, "77");
  b.counts = &c;
  b.n_counts = 1;
  ni_live_tick(&l, 100 * S, S);
  assert_int_equal(ni_live_apply(&l, &b, T(0), 100 * S), 0);
  ni_live_tick(&l, 105 * S, 600 * S);
  assert_int_equal(l.func[0].window_ns, 0); /* a log from its beginning is no rate of now */
  b.file.from = 1;
  b.file.to = 2;
  c.n = 10;
  c.late_ns = 3 * S;
  assert_int_equal(ni_live_apply(&l, &b, T(6), 106 * S), 0);
  ni_live_tick(&l, 109 * S, 600 * S);
  assert_int_equal(l.func[0].window_ns, 0);
  ni_live_tick(&l, 111 * S, 600 * S);
  assert_int_equal(l.func[0].window_ns, 6 * S);
  assert_int_equal(l.func[0].window.n, 10);
  assert_int_equal(l.func[0].window.late_ns, 3 * S);
  assert_int_equal(l.func[0].window.bus_bytes, 1000 << 21);
  ni_live_free(&l);
}

static void bounds(void **state) {
  (void)state;
  struct ni_live l = {0};
  for (int i = 0; i < NI_LIVE_JOBS_MAX + 10; i++) {
    char job[16];
    snprintf(job, sizeof job, "%d", i);
    struct ni_live_counts c = counts(who(job, "dp0", 0), "AllReduce", 1);
    struct ni_live_batch b = logs((uint64_t)i, 0, 1, job);
    b.counts = &c;
    b.n_counts = 1;
    assert_int_equal(ni_live_apply(&l, &b, T(0), S), 0);
  }
  assert_int_equal(l.n_jobs, NI_LIVE_JOBS_MAX);
  assert_int_equal(l.n_files, NI_LIVE_JOBS_MAX + 10); /* what is left out is left out once */
  assert_int_equal(l.left_out, 10);
  struct ni_live_batch full = logs(100000, 0, 1, "77");
  full.totals.keys_left_out = 5;
  assert_int_equal(ni_live_apply(&l, &full, T(0), S), 0);
  assert_int_equal(l.left_out, 15); /* a batch had no room */
  ni_live_tick(&l, S, S);
  assert_true(ni_live_tick(&l, 101 * S, S));
  assert_int_equal(l.n_jobs, 0);
  assert_int_equal(l.n_members, 0);
  ni_live_free(&l);
}

/* A job of that user with so many communicators, each of one name and a rank. */
static void fill(struct ni_live *l, uint32_t uid, const char *job, int n, uint64_t s) {
  struct ni_live_counts *c = calloc((size_t)n, sizeof *c);
  static uint64_t ino;
  struct ni_live_batch b = logs(ino++, 0, 1, job);
  for (int i = 0; i < n; i++) {
    char comm[16];
    snprintf(comm, sizeof comm, "c%d", i);
    c[i] = counts(who(job, comm, 0), "AllReduce", 1);
  }
  b.file.uid = uid;
  b.counts = c;
  b.n_counts = (uint32_t)n;
  assert_int_equal(ni_live_apply(l, &b, T(s), s * S), 0);
  free(c);
}

static bool there(const struct ni_live *l, uint32_t uid, const char *job) {
  return ni_live_job_of(l, job, "0", uid) != NULL;
}

/* One user has taken all; others get their equal shares of it, and no more. */
static void shares(void **state) {
  (void)state;
  struct ni_live l = {0};
  char job[16];
  for (int i = 0; i < NI_LIVE_JOBS_MAX; i++) {
    snprintf(job, sizeof job, "%d", i);
    fill(&l, 1, job, 1, i < 2 ? 10 : 60);
  }
  ni_live_tick(&l, 70 * S, 600 * S); /* the first two have ended */
  fill(&l, 2, "a", 1, 71);
  assert_false(there(&l, 1, "0") && there(&l, 1, "1"));
  assert_int_equal(l.left_out, 0);
  fill(&l, 1, "more", 1, 71); /* over his share: his own that has ended goes */
  assert_true(there(&l, 1, "more") && there(&l, 1, "2") && !there(&l, 1, "0") && !there(&l, 1, "1"));
  fill(&l, 1, "most", 1, 71);
  assert_false(there(&l, 1, "most"));
  assert_int_equal(l.left_out, 1);
  for (int i = 0; i < NI_LIVE_JOBS_MAX; i++) {
    snprintf(job, sizeof job, "%d", i);
    fill(&l, 2, job, 1, 72);
  }
  assert_true(there(&l, 2, "a") && there(&l, 1, "2") && there(&l, 2, "126"));
  assert_false(there(&l, 1, "more") || there(&l, 1, "255") || there(&l, 2, "127"));
  assert_int_equal(l.n_jobs, NI_LIVE_JOBS_MAX);
  assert_int_equal(l.left_out, 1 + NI_LIVE_JOBS_MAX);
  struct ni_live_process p = process("b", 0, NI_LIFE_ALIVE); /* a box brings a job in as well */
  struct ni_live_batch b = {.kind = NI_LIVE_LOOK, .uid = 3, .processes = &p, .n_processes = 1};
  assert_int_equal(ni_live_apply(&l, &b, T(73), 73 * S), 0);
  assert_true(there(&l, 3, "b") && ni_live_job_of(&l, "b", "0", 3)->alive == 1);
  ni_live_free(&l);
  /* Of members and what they did; the job that goes takes all that is its own. */
  for (int i = 0; i < 3; i++) {
    snprintf(job, sizeof job, "%d", i);
    fill(&l, 1, job, NI_LIVE_KEYS_MAX - 96 * (i > 1), 10);
  }
  assert_int_equal(l.n_members, NI_LIVE_MEMBERS_MAX);
  assert_int_equal(l.left_out, NI_LIVE_KEYS_MAX - 96);
  fill(&l, 2, "a", 200, 11);
  assert_true(there(&l, 1, "0") && there(&l, 2, "a") && !there(&l, 1, "1")); /* the newest that has any */
  assert_int_equal(l.n_members, NI_LIVE_KEYS_MAX + 200);
  assert_int_equal(l.n_funcs, l.n_members);
  fill(&l, 1, "0", NI_LIVE_KEYS_MAX, 12); /* what stays is found */
  assert_int_equal(l.func[0].n, 2);
  ni_live_free(&l);
}

static void texts(void **state) {
  (void)state;
  struct ni_live l = {0};
  struct ni_live_counts c = counts(who("a\"b\\\n\033[31m\xff", "\xc3\xa4", 0), "All\tReduce", 1);
  struct ni_live_batch b = logs(1, 0, 1, c.who.job);
  b.counts = &c;
  b.n_counts = 1;
  assert_int_equal(ni_live_apply(&l, &b, T(0), S), 0);
  assert_string_equal(l.job[0].job, "a\"b\\??[31m?");
  assert_string_equal(l.member[0].who.comm, "\xc3\xa4");
  assert_string_equal(l.func[0].func, "All?Reduce");
  assert_non_null(ni_live_job_of(&l, c.who.job, "0", 1001));
  ni_live_free(&l);
}

static void nvidia(void **state) {
  (void)state;
  struct ni_live l = {0};
  struct ni_live_nvidia n = {.who = who("77", "dp0", 0),
                             .func = "AllReduce",
                             .algo_proto = "Ring_ll",
                             .size_log2 = 20,
                             .n = 2,
                             .us = 5};
  struct ni_live_batch b = logs(1, 0, 1, "77");
  b.nvidia = &n;
  b.n_nvidia = 1;
  ni_live_tick(&l, S, S);
  assert_int_equal(ni_live_apply(&l, &b, T(0), S), 0);
  b.file.from = 1;
  b.file.to = 2;
  assert_int_equal(ni_live_apply(&l, &b, T(0), S), 0);
  ni_live_tick(&l, 30 * S, S);
  assert_int_equal(l.n_nvidia_shown, 0);
  ni_live_tick(&l, 31 * S, S);
  assert_int_equal(l.n_nvidia_shown, 1);
  assert_int_equal(l.nvidia_shown[0].n, 4);
  assert_true(l.nvidia_shown[0].us == 10);
  assert_int_equal(l.n_nvidia, 0);
  b.file.from = 2;
  b.file.to = 3;
  assert_int_equal(ni_live_apply(&l, &b, T(0), S), 0);
  assert_int_equal(l.nvidia[0].n, 2);
  ni_live_tick(&l, 61 * S, S);
  ni_live_tick(&l, 91 * S, S);
  assert_int_equal(l.n_nvidia_shown, 0);
  ni_live_free(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(adds_up),      cmocka_unit_test(accounts),
                                     cmocka_unit_test(looks),        cmocka_unit_test(goes),
                                     cmocka_unit_test(processes_go), cmocka_unit_test(rates),
                                     cmocka_unit_test(bounds),       cmocka_unit_test(texts),
                                     cmocka_unit_test(nvidia),       cmocka_unit_test(hangs_elsewhere),
                                     cmocka_unit_test(signs),        cmocka_unit_test(shares),
                                     cmocka_unit_test(rolled)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
