/*
 * Records without a header, as NVIDIA's inspector writes them since v4.3: what the agent's reader makes of
 * them.
 */
#include "watch_made.h"

/*
 * Records without a header, as NVIDIA writes them: none is lost, and none is bad, wherever a slice of the
 * file ends.
 */
static void bare_records(void **ctx) {
  (void)ctx;
  static const char *const names[] = {"bare", "bare-gz", "bare-more"}; /* a record more than announced */
  strcpy(node, "node-0");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char dir[256];
    path_of(dir, names[i]);
    struct truth t = truth_of(dir);
    uint64_t n = 0, bytes = 0;
    struct state s = {0};
    assert_true(t.n > 1000);
    read_all(&s, dir, 0);
    for (size_t k = 0; k < s.n; k++) {
      n += s.row[k].n;
      bytes += s.row[k].bytes;
    }
    if (n != t.n)
      fail_msg("%s: %llu of %llu", names[i], (unsigned long long)n, (unsigned long long)t.n);
    assert_int_equal(bytes, t.bytes);
    assert_int_equal(s.totals.bad_lines, i == 2);
    assert_true(i == 1 || s.logs > s.known.n_files);
    free_state(&s);
  }
  strcpy(node, own_node);
}

static int setup(void **ctx) {
  (void)ctx;
  begin();
  make_bare(true);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bare_records)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
