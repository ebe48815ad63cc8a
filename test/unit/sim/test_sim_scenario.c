/* nccl-sim's scenario reader, its device model, and the arithmetic that the truth rests on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/nccl_sim/core/gpu_clock.h"
#include "test/nccl_sim/core/loader.c"
#include "test/nccl_sim/core/meet.h"
#include "test/nccl_sim/core/model.c"
#include "test/nccl_sim/core/scenario.c"
#include "test/nccl_sim/core/scenario_args.c"
#include "test/nccl_sim/core/scenario_tasks.c"
#include "test/nccl_sim/core/settings.c"
#include "test/nccl_sim/verify/truth_read.h"
#include "test/nccl_sim/verify/truth_read.c"

/*
 * Refused scenarios leave by longjmp where nccl-sim would end: what the reader held then is not given back
 * here.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

static jmp_buf died;
static bool expected;
static char message[512];

void ni_sim_say(const char *fmt, ...) { (void)fmt; }
void ni_die(int status, const char *fmt, ...) {
  va_list ap;
  (void)status;
  va_start(ap, fmt);
  vsnprintf(message, sizeof message, fmt, ap);
  va_end(ap);
  if (!expected) {
    fail_msg("ni_die: %s", message);
    abort();
  }
  longjmp(died, 1);
}

static struct ni_scn *parse(const char *text) { return ni_scn_parse(text, "t.scn", NULL, 0); }

static void refused(const char *text, const char *says) {
  expected = true;
  if (setjmp(died) == 0) {
    parse(text);
    expected = false;
    fail_msg("accepted: %s", text);
  }
  expected = false;
  if (!strstr(message, says))
    fail_msg("message is: %s", message);
}

static void settings_variables_and_command_line(void **state) {
  (void)state;
  const char *sets[] = {"ranks=3", "bytes=2k"};
  struct ni_scn *s = ni_scn_parse(
      "var bytes=1k n=5\nset ranks=8 rate=12.5 nccl=2.27 # comment\ncomm w\n"
      "coll w bytes=$bytes repeat=$n\n",
      "t.scn", sets, 2);
  assert_int_equal(s->set.ranks, 3);
  assert_int_equal(s->set.release, 22707);
  assert_true(s->set.rate == 12.5);
  assert_int_equal(s->comms[0].n_ranks, 3);
  assert_int_equal(s->steps[0].times, 5);
  assert_int_equal(ni_task_bytes(&s->steps[0].plans[0].tasks[0]), 2048);
  ni_scn_free(s);
}

static void symmetric_kernels_tags_and_masks_of_ras(void **state) {
  (void)state;
  struct ni_scn *s = ni_scn_parse(
      "set ranks=2 nccl=2.31\ncomm w\ngroup w plans=2\n"
      "coll variant=AllReduce_AGxLL_R channels=3 tag=0xffffffffffffffff\n"
      "coll symmetric=1\ncoll\ncoll\nend\nras value=coll,kernelch\nras value=all\n"
      "scatter w root=1 tag=5\n",
      "t.scn", NULL, 0);
  const struct ni_task *head = &s->steps[0].plans[0].tasks[0], *tail = head + 1;
  assert_string_equal(head->variant, "AllReduce_AGxLL_R");
  assert_ptr_equal(head->algo, head->variant + strlen("AllReduce_")); /* as NCCL points into the name */
  assert_string_equal(head->proto, "");
  assert_true(head->tag == UINT64_MAX);
  assert_true(tail->fused_tail && !head->fused_tail);
  assert_string_equal(tail->variant, "AllReduce_AGxLL_R");
  assert_int_equal(tail->n_ch, 3);
  assert_true(head->rel_stop_ns == tail->rel_stop_ns);
  assert_false(s->steps[0].plans[1].tasks[0].symmetric);
  assert_int_equal(s->steps[1].value, 0x42);
  assert_int_equal(s->steps[2].value, 0x7fff); /* all leaves out KernelPhase */
  assert_int_equal(s->steps[3].plans[0].n_tasks, 4);
  assert_true(s->steps[3].plans[0].tasks[3].tag == 5);
  ni_scn_free(s);
  refused("comm w\ncoll w func=Broadcast symmetric=1\n",
          "AllReduce, AllGather and ReduceScatter have such kernels");
  refused("comm w\ncoll w func=AllGather variant=AllReduce_AGxLL_R\n", "each its own");
  refused("comm w\ncoll w variant=AllReduce_X\n", "variant=AllReduce_X: not a symmetric kernel");
  refused("comm w\ngroup w\ncoll symmetric=1\ncoll\nend\n", "all symmetric or none is");
  refused("comm w\ngroup w\ncoll symmetric=1\ncoll func=AllGather symmetric=1\nend\n", "has one function");
  refused("comm w\ncoll w tag=7x\n", "tag=7x: accepted is a whole number of 64 bits");
  refused("comm w\nras value=everything\n", "value=everything: accepted are none, all");
  refused("set interface=v8\n", "accepted are auto, v1 to v7");
}

static void messages_name_line_value_and_range(void **state) {
  (void)state;
  refused("comm w\n\ncoll w channels=257\n", "t.scn:3: channels=257: accepted is a number from 1 to 256");
  refused("set inflight=0\n", "t.scn:1: inflight=0: accepted is a whole number from 1");
  refused("set end=boom\n", "end=boom: accepted are finalize, exit");
  refused("comm w\ncoll w late=x\n", "late=x: accepted is CHANNEL:MILLISECONDS");
  refused("comm w\ncoll w first=252 channels=8\n", "must not exceed 256");
  refused("comm w\ncomm v\ncoll func=AllReduce\n", "name the communicator");
  refused("comm w\ngroup w plans=3\ncoll\nend\n", "plans=3");
  refused("comm w\nloop times=2\ncoll\n", "`end` is missing");
  refused("set ranks=4\ncomm w ranks=2-5\n", "the job has ranks 0 to 3");
  refused("set ranks=2\ncomm w\ngraph w\ncoll\nend\nreplay w times=2 concurrent=1\n", "live=1");
}

static void rank_lists(void **state) {
  (void)state;
  struct ni_scn *s = parse(
      "set ranks=16 nodes=2\ncomm a ranks=0-3,6,8-14/2\ncomm b ranks=0,8 label=-\ncomm c copies=3 "
      "ranks=1-2\n");
  static const int a[] = {0, 1, 2, 3, 6, 8, 10, 12, 14};
  assert_int_equal(s->comms[0].n_ranks, 9);
  assert_memory_equal(s->comms[0].ranks, a, sizeof a);
  assert_int_equal(s->comms[0].n_nodes, 2);
  assert_int_equal(s->comms[1].n_nodes, 2);
  assert_null(s->comms[1].label);
  assert_int_equal(s->n_comms, 5);
  assert_string_equal(s->comms[4].name, "c2");
  assert_int_equal(s->comms[4].n_nodes, 1);
  ni_scn_free(s);
}

static void plans_keep_rounds_together(void **state) {
  (void)state;
  struct ni_scn *s =
      parse("set ranks=4\ncomm w\ngroup w plans=3\ncoll\ncoll\ncoll\nsendrecv shift=1\ncoll\nend\n");
  const struct ni_step *st = &s->steps[0];
  int n = 0;
  assert_int_equal(st->n_plans, 3);
  for (int p = 0; p < 3; p++) {
    assert_true(st->plans[p].n_tasks > 0);
    assert_false(st->plans[p].tasks[0].paired);
    n += st->plans[p].n_tasks;
  }
  assert_int_equal(n, 6);
  ni_scn_free(s);
}

static void alltoall_pairs_every_rank(void **state) {
  (void)state;
  struct ni_scn *s = parse("set ranks=4\ncomm w\nalltoall w channels=2\n");
  const struct ni_plan *p = &s->steps[0].plans[0];
  int sent[4][4] = {{0}}, got[4][4] = {{0}};
  assert_int_equal(p->n_tasks, 8);
  for (int i = 0; i < p->n_tasks; i++)
    for (int r = 0; r < 4; r++) {
      int peer = ni_task_peer(&p->tasks[i], r, 4);
      if (p->tasks[i].kind == NI_TASK_SEND)
        sent[r][peer]++;
      else
        got[peer][r]++;
    }
  assert_memory_equal(sent, got, sizeof sent); /* each Send has its Recv, the own rank too */
  for (int i = 0; i < 16; i++)
    assert_int_equal(sent[i / 4][i % 4], 1);
  ni_scn_free(s);
}

/* On one channel the device runs one work after the other; what is paired runs at the same time. */
static void works_of_a_channel_follow_each_other(void **state) {
  (void)state;
  struct ni_scn *s = parse(
      "set ranks=4\ncomm w\ngroup w\ncoll channels=4 first=0\ncoll channels=4 first=2 late=3:5\n"
      "coll channels=2 first=2\nsendrecv shift=1 channels=2\ncoll channels=8\nend\n");
  const struct ni_plan *p = &s->steps[0].plans[0];
  assert_true(p->jitter_ns && !(p->jitter_ns & (p->jitter_ns - 1)));
  for (int i = 0; i < p->n_tasks; i++) {
    const struct ni_task *t = &p->tasks[i];
    assert_true(t->rel_stop_ns > t->rel_start_ns);
    if (t->paired)
      assert_int_equal(t->rel_stop_ns, t[-1].rel_stop_ns);
    for (int k = 0; k < i; k++) {
      const struct ni_task *u = &p->tasks[k];
      bool share = t->ch0 < u->ch0 + u->n_ch && u->ch0 < t->ch0 + t->n_ch;
      if (share && !t->paired)
        assert_true(t->rel_start_ns >= u->rel_stop_ns + 4 * p->jitter_ns);
    }
    assert_true(p->total_ns >= t->rel_stop_ns);
  }
  assert_true(p->tasks[2].rel_start_ns >= p->tasks[1].rel_stop_ns + 5000000); /* waits for the late channel */
  ni_scn_free(s);
}

static void bandwidth_is_what_the_model_says(void **state) {
  (void)state;
  struct ni_scn *s = parse("set ranks=8\ncomm w\ncoll w bytes=1g\ncoll w bytes=1g func=AllGather\n");
  for (int i = 0; i < 2; i++) {
    const struct ni_task *t = &s->steps[i].plans[0].tasks[0];
    double busbw = (double)ni_nccl_tests_bytes(t->func, ni_task_bytes(t), 8) * ni_bus_factor(t->func, 8) /
        (double)t->rel_stop_ns;
    assert_true(busbw > 375 && busbw < 380); /* of 380 GB/s, less the latency */
  }
  ni_scn_free(s);
}

static void gpu_clock_steps_offset_drift(void **state) {
  (void)state;
  struct ni_gpu_clock c;
  ni_gpu_clock_set(&c, 1000000000, 500, 0, 10, 50, 1); /* +10 us, 50 ppm */
  assert_int_equal(ni_gpu_stamp(&c, 1000000000) % 32, 0);
  assert_int_equal(ni_gpu_stamp(&c, 1000000000), (1000000000 + 500 + 10000) & ~31);
  assert_int_equal(ni_gpu_stamp(&c, 2000000000), (2000000000u + 500 + 10000 + 50000) & ~31u);
  uint64_t last = 0;
  for (uint64_t t = 1000000000; t < 1000100000; t += 7) {
    assert_true(ni_gpu_stamp(&c, t) >= last);
    last = ni_gpu_stamp(&c, t);
  }
}

static void ranks_meet_and_slots_are_used_again(void **state) {
  (void)state;
  static struct ni_meet m;
  uint64_t latest = 0;
  for (uint64_t i = 0; i < 3 * NI_MEET_SLOTS; i++) {
    assert_true(ni_meet_arrive(&m, i, 100 + i));
    assert_false(ni_meet_done(&m, i, 2, &latest));
    assert_false(ni_meet_arrive(&m, i + NI_MEET_SLOTS, 1)); /* the slot still serves i */
    assert_true(ni_meet_arrive(&m, i, 200 + i));
    assert_true(ni_meet_done(&m, i, 2, &latest));
    assert_int_equal(latest, 200 + i);
    assert_false(ni_meet_arrive(&m, i + NI_MEET_SLOTS, 1)); /* one has not left yet */
    assert_true(ni_meet_done(&m, i, 2, &latest));
    assert_int_equal(latest, 200 + i);
  }
}

static void what_the_truth_expects(void **state) {
  (void)state;
  char path[] = "/tmp/ni-truth-XXXXXX";
  int fd = mkstemp(path);
  static const char text[] =
      "{\"t\":\"proc\",\"pid\":7,\"host\":\"h\",\"nccl\":23007,\"mask_steps\":0,\"env\":{"
      "\"NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES\":\"100\",\"NCCL_INSPECTOR_POOL_GROW\":\"0\"}}\n"
      "{\"t\":\"comm\",\"pid\":7,\"hash\":\"0xab\",\"rank\":1,\"n_ranks\":4,\"nnodes\":1,\"interface\":4,"
      "\"named\":1,"
      "\"name\":\"a\\u00e4\\\"b\"}\n"
      "{\"t\":\"op\",\"pid\":7,\"hash\":\"0xab\",\"rank\":1,\"kind\":\"coll\",\"func\":\"AllReduce\","
      "\"called\":1,"
      "\"null\":0,"
      "\"out\":\"done\",\"bytes\":400,\"desc_nch\":2}\n"
      "{\"t\":\"op\",\"pid\":7,\"hash\":\"0xab\",\"rank\":1,\"kind\":\"coll\",\"func\":\"AllReduce\","
      "\"called\":1,"
      "\"null\":0,"
      "\"out\":\"done\",\"bytes\":99,\"desc_nch\":0}\n"
      "{\"t\":\"op\",\"pid\":7,\"hash\":\"0xab\",\"rank\":1,\"kind\":\"p2p\",\"func\":\"Send\",\"called\":1,"
      "\"null\":1,"
      "\"out\":\"done\",\"bytes\":400,\"desc_nch\":2}\n"
      "{\"t\":\"op\",\"pid\":7,\"hash\":\"0xab\",\"rank\":1,\"kind\":\"coll\",\"func\":\"AllReduce\","
      "\"called\":1,"
      "\"null\":0,"
      "\"out\":\"done\",\"bytes\":400,\"desc_nch\":2,\"missing\":1}\n"
      "{\"t\":\"op\",\"pid\":7,\"hash\":\"0xab\",\"rank\":1,\"kind\":\"coll\",\"func\":\"AllReduce\","
      "\"called\":0,"
      "\"null\":0,"
      "\"out\":\"done\",\"bytes\":400,\"desc_nch\":2}\n"
      "{\"t\":\"end\",\"pid\":7,\"how\":\"sigkill\",\"ns\":5}\n";
  assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
  close(fd);
  struct ni_true t;
  ni_truth_load(&t, path);
  unlink(path);
  assert_int_equal(t.n_ops, 5);
  assert_false(t.procs[0].grow);
  assert_int_equal(t.procs[0].how, NI_END_SIGKILL);
  assert_string_equal(t.comms[0].name, "a\xe4\"b");
  assert_null(ni_true_unwritten(&t, &t.ops[0]));
  assert_string_equal(ni_true_unwritten(&t, &t.ops[1]), "filtered by size");
  assert_string_equal(ni_true_unwritten(&t, &t.ops[2]), "dropped");
  assert_string_equal(ni_true_unwritten(&t, &t.ops[3]), "incomplete");
  assert_string_equal(ni_true_unwritten(&t, &t.ops[4]), "never shown to the plugin");
  assert_false(ni_true_want_unknown(&t, &t.ops[0]));
  assert_true(ni_true_want_unknown(&t, &t.ops[1])); /* CollNet */
  assert_true(ni_true_want_unknown(&t, &t.ops[2])); /* P2P through the v4 translation */
  t.procs[0].nccl = 22707;
  assert_false(ni_true_want_unknown(&t, &t.ops[2]));
  ni_truth_free(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(settings_variables_and_command_line),
      cmocka_unit_test(symmetric_kernels_tags_and_masks_of_ras),
      cmocka_unit_test(messages_name_line_value_and_range),
      cmocka_unit_test(rank_lists),
      cmocka_unit_test(plans_keep_rounds_together),
      cmocka_unit_test(alltoall_pairs_every_rank),
      cmocka_unit_test(works_of_a_channel_follow_each_other),
      cmocka_unit_test(bandwidth_is_what_the_model_says),
      cmocka_unit_test(gpu_clock_steps_offset_drift),
      cmocka_unit_test(ranks_meet_and_slots_are_used_again),
      cmocka_unit_test(what_the_truth_expects),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
