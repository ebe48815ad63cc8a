/*
 * Black boxes by their documented layout: what a slot is, records and accounts that come out, and files that
 * are not sound.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "exporter/model/hang/read_boxes.h"
#include "exporter/cmds/hang/say.h"
#include "exporter/model/hang/verdict.h"
#include "exporter/input/box/box_decode.h"
#include "exporter/cmds/recover/recover_box.h"
#include "exporter/cmds/recover/place.h"
#include "recover_part.h"
#include "synthetic_box.h"

#define T0 UINT64_C(1790000000000000000)
#define S UINT64_C(1000000000)
#define FLAG(f) NI_BOX_OP_##f

static char dir[64];

static int make_dir(void **state) {
  (void)state;
  strcpy(dir, "/tmp/test_box.XXXXXX");
  return mkdtemp(dir) ? 0 : -1;
}
static int remove_dir(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", dir);
  return system(command);
}

static const char *at(const char *name) {
  static char path[4][256];
  static int i;
  i = (i + 1) % 4;
  snprintf(path[i], sizeof path[i], "%s/%s", dir, name);
  return path[i];
}

static struct ni_box *open_box(struct sbox *s) {
  struct ni_box *b = NULL;
  char why[256];
  assert_int_equal(sbox_write(s, at("x.box")), 0);
  int e = ni_box_open(&b, at("x.box"), 0, why, sizeof why);
  if (e)
    fail_msg("%d %s", e, why);
  return b;
}

/* A communicator with one operation of each sort. */
static struct sbox sample(void) {
  struct sbox s = sbox_new("node-a", 4242, 3, 8, T0 + 100 * S);
  uint32_t c = sbox_comm(&s, "dp0", 0xabc, 3, 8, T0);
  struct sbox_op op = {.flags = FLAG(LIVE) | FLAG(CLOSED) | FLAG(KDONE) | FLAG(DONE),
                       .want = 4,
                       .started = 4,
                       .stopped = 4,
                       .count = 1000,
                       .start_ns = T0 + S,
                       .first_ns = T0 + S + 1000,
                       .done_ns = T0 + S + 60000,
                       .gpu_start_ns = 5 * S,
                       .gpu_stop_ns = 5 * S + 50000,
                       .func = "AllReduce"};
  (void)sbox_op(&s, c, &op); /* finished: rec_sn 0 */
  op.sn = op.rec_sn = 1;
  op.flags = 0;
  (void)sbox_op(&s, c, &op); /* free: in the log long ago */
  op.sn = op.rec_sn = 2;
  op.flags = FLAG(LIVE) | FLAG(CLOSED) | FLAG(RETIRED);
  op.want = NI_BOX_WANT_UNKNOWN;
  (void)sbox_op(&s, c, &op); /* finished by judgement */
  op.sn = op.rec_sn = 3;
  op.flags = FLAG(LIVE) | FLAG(CLOSED) | FLAG(RETIRED) | FLAG(GIVEN_UP);
  op.want = 4;
  op.stopped = 3;
  (void)sbox_op(&s, c, &op); /* incomplete */
  op.sn = op.rec_sn = 4;
  op.flags = FLAG(LIVE) | FLAG(CLOSED) | FLAG(RETIRED) | FLAG(SETTLED);
  (void)sbox_op(&s, c, &op); /* resting: in the log */
  op.sn = op.rec_sn = 5;
  op.flags = FLAG(LIVE) | FLAG(CLOSED);
  op.start_ns = T0 + 60 * S;
  op.stopped = 1;
  (void)sbox_op(&s, c, &op); /* in flight on channels 1 to 3 */
  op.start_ns = T0 - S;
  op.stopped = 4;
  op.sn = op.rec_sn = 0;
  (void)sbox_op(&s, c, &op);                                    /* of the page's life before */
  sbox_set(&s, sbox_kind(&s, c, 0), NI_BOX_KIND_DROPPED, 1, 2); /* arena_full: 6 and 7 */
  sbox_set(&s, sbox_kind(&s, c, 0), NI_BOX_KIND_STARTED, 0, 8);
  return s;
}

struct seen {
  int n[6];
  uint64_t open;
  const struct ni_box *b;
};

static int see(const struct ni_box_op *op, void *arg) {
  struct seen *s = arg;
  if (ni_box_comm_of(s->b, op) < 0)
    return 0;
  s->n[op->is]++;
  if (op->is == NI_BOX_SLOT_IN_FLIGHT) {
    s->open = ni_box_open_channels(s->b, 0, op);
    assert_int_equal(op->rec_sn, 5);
    assert_int_equal(op->bytes, 4000);
    assert_string_equal(op->func, "AllReduce");
  }
  return 0;
}

static void test_slots(void **state) {
  (void)state;
  struct sbox s = sample();
  struct ni_box *b = open_box(&s);
  struct seen seen = {.b = b};
  struct ni_box_comm c;
  assert_true(ni_box_comm_at(b, 0, &c));
  assert_true(c.phase == 1 && c.id.comm_hash == 0xabc && c.id.rank == 3 && c.id.n_ranks == 8 &&
              c.init_ns == T0);
  assert_string_equal(c.id.comm_name, "dp0");
  assert_true(c.kind[0].started == 8 && c.kind[0].dropped[NI_DROP_ARENA_FULL] == 2);
  assert_false(ni_box_comm_at(b, 1, &c));
  assert_int_equal(ni_box_each_op(b, see, &seen), 0);
  assert_int_equal(seen.n[NI_BOX_SLOT_FINISHED], 2);
  assert_int_equal(seen.n[NI_BOX_SLOT_IN_FLIGHT], 1);
  assert_int_equal(seen.n[NI_BOX_SLOT_GIVEN_UP], 1);
  assert_int_equal(seen.n[NI_BOX_SLOT_RESTING], 1);
  assert_int_equal(seen.open, 0xe); /* channel 0 has stopped */
  assert_int_equal(ni_box_life(b), NI_LIFE_UNKNOWN);
  ni_box_close(b);
  sbox_free(&s);
}

/* The part's text, unpacked. */
static char *part_text(const char *path) {
  static char text[65536];
  gzFile f = gzopen(path, "rb");
  assert_non_null(f);
  int n = gzread(f, text, sizeof text - 1);
  assert_true(n > 0);
  text[n] = 0;
  gzclose(f);
  return text;
}

static void must_have(const char *text, const char *what) {
  if (!strstr(text, what))
    fail_msg("missing: %s\nin: %s", what, text);
}

static void test_part(void **state) {
  (void)state;
  struct sbox s = sample();
  sbox_session(&s, T0, dir, "node-a-pid4242-1790000000.jsonl.gz",
               "{\"header\":{\"id\":\"0x0\",\"rank\":3,\"n_ranks\":8,\"nnodes\":0},\"metadata\":{\"inspector_"
               "output_format_version\":"
               "\"v4.0\",\"git_rev\":\"g\",\"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_"
               "us\":1,\"hostname\":"
               "\"node-a\",\"pid\":4242,\"producer\":\"nccl-inspector-c "
               "t\"},\"process\":{\"start_ns\":1790000000000000000,"
               "\"settings\":{}}}");
  struct ni_box *b = open_box(&s);
  struct ni_log_state log = {0};
  struct ni_recovered r;
  char part[600];
  assert_int_equal(recover_part(b, &log, dir, "part", false, &r, part), 0);
  assert_true(*part);
  assert_true(r.records == 2 && r.in_flight == 1 && r.incomplete == 1 && r.communicators == 1 &&
              r.damaged == 0);
  char *text = part_text(part);
  must_have(text, "\"settings\":{},\"recovered_ns\":");
  must_have(text, "\"recovered_live\":false}}\n");
  /* 50 us by the GPU's clock, 4,000 bytes. */
  must_have(
      text,
      "\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":0,\"coll_msg_size_bytes\":4000,\"coll_exec_time_"
      "us\":50,"
      "\"coll_timing_source\":\"kernel_gpu\",\"coll_algobw_gbs\":0.080000,\"coll_busbw_gbs\":0.140000,"
      "\"coll_algo\":\"RING\",\"coll_proto\":\"SIMPLE\",\"coll_datatype\":\"ncclFloat32\",\"coll_root\":0,"
      "\"coll_nchannels\":4,\"coll_exec_time_ns\":50000,\"coll_enqueue_ns\":1790000001000000000,\"rec_sn\":0,"
      "\"nccl_tests_size_bytes\":4000}}\n");
  must_have(text, "\"coll_nchannels\":4,\"nchannels_src\":\"observed\",");
  must_have(text, "\"incomplete\":{\"kind\":\"coll\",\"func\":\"AllReduce\",\"sn\":3,\"rec_sn\":3,");
  must_have(
      text,
      "\"in_flight\":{\"kind\":\"coll\",\"func\":\"AllReduce\",\"sn\":5,\"rec_sn\":5,\"msg_size_bytes\":4000,"
      "\"channels_expected\":4,\"channels_started\":4,\"channels_stopped\":1,\"enqueue_ns\":"
      "1790000060000000000,"
      "\"age_ms\":40000,\"why\":\"killed\",\"state\":\"kernel\",\"datatype\":\"ncclFloat32\",\"root\":0,"
      "\"channels_open\":\"0xe\"}}\n");
  must_have(text,
            "\"gap\":{\"kind\":\"coll\",\"count\":2,\"cause\":\"arena_full\",\"rec_sn_from\":0,\"rec_sn_to\":"
            "7}}\n");
  /*
   * 8 started: 2 written, 2 dropped, 1 incomplete; 1 and 4 are the log's, which we do not have: in flight
   * with 5.
   */
  must_have(text,
            "\"final\":true,\"coll\":{\"started\":8,\"written\":2,\"filtered_by\":{},\"dropped_by\":{\"arena_"
            "full\":2},"
            "\"incomplete\":1,\"late\":0,\"in_flight\":3,");
  assert_int_equal(r.unlisted, 2);
  must_have(text, "\"comm_end\":{\"why\":\"killed\",\"ns\":1790000100000000000}}\n");

  /* The log with that part has it all. */
  assert_int_equal(ni_log_state_read(&log, part, T0), 0);
  assert_true(ni_log_state_find(&log, 0xabc, 3, T0)->final);
  assert_int_equal(recover_part(b, &log, dir, "part", false, &r, part), 0);
  assert_false(*part);
  assert_true(r.records == 0 && r.communicators == 0);
  ni_log_state_free(&log);
  ni_box_close(b);
  sbox_free(&s);
}

/* Collectives known by their call alone: one that has its numbers, two that nobody has decided on, and one
 * whose operation has come since. Of a process that lives only the first is known to be one. */
static void test_called(void **state) {
  (void)state;
  struct sbox s = sample();
  uint32_t c = SBOX_DATA; /* the first page of data is the communicator's */
  struct sbox_op op = {.flags = FLAG(LIVE) | FLAG(CLOSED) | FLAG(KDONE) | FLAG(DONE),
                       .origin = NI_BOX_ORIGIN_CALLED | NI_BOX_ORIGIN_API,
                       .call = 20,
                       .sn = 6,
                       .rec_sn = 6,
                       .count = 10,
                       .start_ns = T0 + 98 * S,
                       .func = "AllReduce"};
  (void)sbox_op(&s, c, &op);
  op.flags = FLAG(CLOSED);
  for (op.call = 23; op.call > 20; op.call--) { /* not in their order */
    op.sn = op.rec_sn = 0;
    op.start_ns = T0 + (78 + op.call) * S;
    (void)sbox_op(&s, c, &op);
  }
  op = (struct sbox_op){.flags = FLAG(LIVE),
                        .want = 4,
                        .origin = NI_BOX_ORIGIN_CALLED,
                        .call = 22,
                        .sn = 7,
                        .rec_sn = 7,
                        .start_ns = T0 + 99 * S,
                        .func = "AllReduce"};
  (void)sbox_op(&s, c, &op);
  unsigned char *comm = s.p + (size_t)c * NI_BOX_PAGE_BYTES;
  sbox_set(&s, comm, NI_BOX_COMM_CALLS, 0, 24);
  sbox_set(&s, comm, NI_BOX_COMM_API_SN, NI_FUNC_ALLREDUCE, 7);
  struct ni_box *b = open_box(&s);
  struct ni_log_state log = {0};
  struct ni_recovered r;
  char part[600];
  assert_int_equal(recover_part(b, &log, dir, "called", false, &r, part), 0);
  assert_true(r.records == 5 && r.in_flight == 2 && r.damaged == 0);
  char *text = part_text(part);
  must_have(text,
            "\"coll_datatype\":\"ncclFloat32\",\"coll_root\":0,\"coll_exec_time_ns\":0,\"coll_enqueue_ns\":"
            "1790000098000000000,"
            "\"rec_sn\":6,\"nccl_tests_size_bytes\":40,\"call_sn\":20,\"coll_src\":\"api\"}}\n");
  must_have(text, "\"rec_sn\":8,\"nccl_tests_size_bytes\":40,\"call_sn\":21,\"coll_src\":\"api\"}}\n");
  must_have(text, "\"rec_sn\":9,\"nccl_tests_size_bytes\":40,\"call_sn\":23,\"coll_src\":\"api\"}}\n");
  assert_null(strstr(text, "\"call_sn\":22,\"coll_src\""));
  for (int sn = 6; sn < 9; sn++) {
    char number[96];
    snprintf(number, sizeof number, "\"coll\":\"AllReduce\",\"coll_sn\":%d,\"coll_msg_size_bytes\":40,", sn);
    must_have(text, number);
  }
  must_have(text, "\"coll\":{\"started\":10,\"written\":5,");
  assert_int_equal(recover_part(b, &log, dir, "called", true, &r, part), 0);
  assert_int_equal(r.records, 3);
  must_have(part_text(part), "\"coll\":{\"started\":8,\"written\":3,");
  ni_box_close(b);
  sbox_free(&s);
}

/*
 * Killed between the write() and the freeing of its slots: what the log has, whatever its life's state, is
 * not written again.
 */
static void test_not_twice(void **state) {
  (void)state;
  struct sbox s = sample();
  struct ni_box *b = open_box(&s);
  struct ni_log_life *life;
  struct ni_log_state log = {0};
  struct ni_recovered r;
  char part[600];
  assert_int_equal(ni_log_state_life(&log, 0xabc, 3, T0, &life), 0);
  assert_int_equal(ni_seq_set_add(&life->kind[0].records, 2), 0);
  assert_int_equal(ni_seq_set_add(&life->kind[0].incomplete, 3), 0);
  life->kind[0].flushed = 1;
  assert_int_equal(recover_part(b, &log, dir, "twice", false, &r, part), 0);
  assert_true(r.records == 1 && r.incomplete == 0 && r.in_flight == 1);
  char *text = part_text(part);
  assert_null(strstr(text, "\"coll_sn\":2,"));
  assert_null(strstr(text, "\"incomplete\":{"));
  must_have(text, "\"dump_stats\":{\"coll_records\":1,");
  must_have(text,
            "\"coll\":{\"started\":8,\"written\":2,\"filtered_by\":{},\"dropped_by\":{\"arena_full\":2},"
            "\"incomplete\":1,");
  /* Another life of the same communicator says nothing about this one. */
  ni_log_state_free(&log);
  assert_int_equal(ni_log_state_life(&log, 0xabc, 3, T0 + 1, &life), 0);
  assert_int_equal(recover_part(b, &log, dir, "twice", false, &r, part), 0);
  assert_int_equal(r.records, 2);
  ni_log_state_free(&log);
  ni_box_close(b);
  sbox_free(&s);
}

/* What changes in a sound box, and what must be said about it. */
static void refused(struct sbox *s, size_t cut, const char *why_has) {
  struct ni_box *b = NULL;
  char why[256];
  FILE *f = fopen(at("bad.box"), "wbe");
  size_t n = cut ? cut : (size_t)s->pages * NI_BOX_PAGE_BYTES;
  assert_true(f && fwrite(s->p, 1, n, f) == n && fclose(f) == 0);
  assert_true(ni_box_open(&b, at("bad.box"), 0, why, sizeof why) < 0);
  must_have(why, why_has);
  assert_null(b);
}

static void test_refused(void **state) {
  (void)state;
  struct sbox s = sample();
  sbox_close(&s);
  struct ni_box_header *h = sbox_header(&s), sound = *h;
#define BAD(change, says) h = sbox_header(&s), *h = sound, change, refused(&s, 0, says)
  BAD(h->magic[0] = 'X', "no black box");
  BAD(h->byte_order = 0x04030201, "other byte order");
  BAD(h->version = 3, "layout 3, this program reads up to 2");
  BAD(h->header_bytes = 100, "header_bytes is 100");
  BAD(h->page_bytes = 65536, "65536 bytes");
  BAD(h->slot_bytes = 100, "slots of 100");
  BAD(h->comm_pages = 0, "communicators of 0 pages");
  BAD(h->texts.at = UINT64_MAX, "cut short");
  BAD(h->texts.entries = UINT32_MAX, "cut short");
  BAD(h->class_map.bytes = UINT64_MAX, "cut short");
  BAD(h->session[1].at = UINT64_C(1) << 63, "cut short");
  BAD(h->watermark_at = 1, "cut short");
  BAD(h->field[NI_BOX_OP_STATE].at = 65535, "field 0");
  BAD(h->n_fields = 1, "field");
  BAD(h->kind_stride = UINT32_MAX, "field");
#undef BAD
  *sbox_header(&s) = sound;
  refused(&s, 100, "too short");
  refused(&s, 2 * NI_BOX_PAGE_BYTES, "cut short");
  struct ni_box *b = NULL;
  char why[256];
  assert_int_equal(ni_box_open(&b, at("none.box"), 0, why, sizeof why), -ENOENT);
  assert_int_equal(ni_box_open(&b, dir, 0, why, sizeof why), -EBADMSG);
  must_have(why, "regular file");
  /* Cut behind the pieces: what is left is read. */
  FILE *f = fopen(at("cut.box"), "wbe");
  assert_true(f && fwrite(s.p, NI_BOX_PAGE_BYTES, SBOX_DATA + 1, f) == SBOX_DATA + 1 && fclose(f) == 0);
  assert_int_equal(ni_box_open(&b, at("cut.box"), 0, why, sizeof why), 0);
  ni_box_close(b);
  sbox_free(&s);
}

/* A copy says when it was taken, and is read as the box was. */
static void test_copy(void **state) {
  (void)state;
  struct sbox s = sample();
  struct ni_box *b = open_box(&s), *c = NULL;
  char why[256];
  FILE *f = fopen(at("copy.box"), "wbe");
  assert_non_null(f);
  assert_int_equal(ni_box_write_copy(b, fileno(f)), 0);
  fclose(f);
  assert_int_equal(ni_box_open(&c, at("copy.box"), 0, why, sizeof why), 0);
  assert_true(ni_box_is_copy(c) && !ni_box_is_copy(b));
  assert_true(ni_box_taken_ns(c) == ni_box_taken_ns(b));
  assert_true(ni_box_held(c) == ni_box_held(b));
  struct seen x = {.b = b}, y = {.b = c};
  assert_int_equal(ni_box_each_op(b, see, &x), 0);
  assert_int_equal(ni_box_each_op(c, see, &y), 0);
  assert_memory_equal(x.n, y.n, sizeof x.n);
  ni_box_close(b);
  ni_box_close(c);
  sbox_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_slots),   cmocka_unit_test(test_part),
                                     cmocka_unit_test(test_called),  cmocka_unit_test(test_not_twice),
                                     cmocka_unit_test(test_refused), cmocka_unit_test(test_copy)};
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
