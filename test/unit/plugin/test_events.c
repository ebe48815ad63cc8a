/*
 * Lists of kinds, NCCL's mask of each interface version, and switching while communicators of two NCCLs live.
 */
#include "plugin/settings/event_names.h"
#include "core_child.h"

#define K(e) NI_KINDS(NI_EVENT_##e)

static void lists(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint32_t kinds;
  } good[] = {
      {"standard", NI_KINDS_STANDARD},
      {"coll, p2p kernelch", NI_KINDS_STANDARD},
      {"deep,-net", NI_KINDS_DEEP & ~K(NET)},
      {"all", NI_KINDS_ALL},
      {"trace,-steps", NI_KINDS_DEEP},
      {"-kernelch", K(COLL) | K(P2P)},
      {"light,kernelch,-proxyop", (NI_KINDS_LIGHT | K(KERNEL_CH)) & ~K(PROXY_OP)},
      {" ce\tsync,,batch ", K(CE) | K(SYNC) | K(BATCH)},
      /* phases are parts of KernelCh */
      {"all,-standard", NI_KINDS_ALL & ~NI_KINDS_STANDARD & ~K(KERNEL_PHASE)},
      {"coll,kernelphase", K(COLL) | K(KERNEL_CH) | K(KERNEL_PHASE)},
      {"deep,-kernelphase", NI_KINDS_DEEP & ~K(KERNEL_PHASE)},
      {"none", 0},
  };
  char text[NI_KINDS_TEXT_BYTES], why[128];
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    uint32_t got = 1, again = 1;
    assert_true(ni_kinds_parse(good[i].text, &got, why, sizeof why));
    assert_int_equal(got, good[i].kinds);
    ni_kinds_text(got, text, sizeof text);
    assert_true(ni_kinds_parse(text, &again, why, sizeof why));
    assert_int_equal(again, got);
  }
  ni_kinds_text(NI_KINDS_ALL & ~K(GROUP), text, sizeof text); /* the longest list fits */
  assert_non_null(strstr(text, ",steps"));
  static const char *const bad[] = {"", " , ", "col", "standard,-", "Coll", "coll;p2p", "--coll", "collx"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    uint32_t got = 77;
    assert_false(ni_kinds_parse(bad[i], &got, why, sizeof why));
    assert_int_equal(got, 77);
    assert_true(strlen(why) > 10);
  }
}

static void masks(void **state) {
  (void)state;
  assert_int_equal(ni_masks_value(NI_KINDS_STANDARD, 6, true), 0x46);
  assert_int_equal(ni_masks_value(NI_KINDS_STANDARD, 6, false), 0x42);
  assert_int_equal(ni_masks_value(NI_KINDS_STANDARD, 2, true), 0x06);
  assert_int_equal(ni_masks_value(NI_KINDS_ALL, 1, true), 0x3f);
  assert_int_equal(ni_masks_value(NI_KINDS_ALL, 3, true), 0xff);
  assert_int_equal(ni_masks_value(NI_KINDS_ALL, 4, true), 0xff);
  assert_int_equal(ni_masks_value(NI_KINDS_ALL, 5, true), 0xfff);
  assert_int_equal(ni_masks_value(NI_KINDS_ALL, 6, true), 0x7fff);
  assert_int_equal(ni_masks_value(NI_KINDS_ALL, 6, false), 0x7fff & ~0x404);
  assert_int_equal(ni_masks_value(NI_KINDS_ALL, 7, true), 0xffff);
  /* phases hang on KernelCh */
  assert_int_equal(ni_masks_value(NI_KINDS_ALL & ~K(KERNEL_CH), 7, true), 0xffff & ~0x8040);
  assert_int_equal(ni_masks_value(NI_KINDS_ALL, 8, true), 0);
  assert_int_equal(ni_masks_value(NI_KINDS_ALL, 0, true), 0);
}

static int mask_a, mask_b;

/* A mask is written while a communicator of its NCCL lives, and never after: the library may be unmapped. */
static void switching_child(void) {
  void *a1 = open_comm_of(1, &mask_a), *a2 = open_comm_of(2, &mask_a), *b = open_comm_of(3, &mask_b);
  CHECK(mask_a == 0x1 && mask_b == 0x1);
  ni_masks_set(NI_KINDS_TRACE);
  CHECK(mask_a == 0x7fff && mask_b == 0x7fff && ni_masks_kinds() == NI_KINDS_TRACE);
  ni_finalize(a1);
  ni_finalize(b);
  ni_masks_set(NI_KINDS_STANDARD);
  CHECK(mask_a == 0x46 && mask_b == 0x7fff);
  b = open_comm_of(4, &mask_b); /* a new one gets what holds now */
  CHECK(mask_b == 0x46);
  ni_finalize(a2);
  ni_finalize(b);
  ni_masks_set(0);
  CHECK(mask_a == 0x46 && mask_b == 0x46);
  a1 = open_comm_of(5, &mask_a);
  CHECK(mask_a == 0);
  ni_finalize(a1);
}

static void switching(void **state) {
  (void)state;
  in_child(switching_child, (const char *const[]){"NCCL_PROFILE_EVENT_MASK", "1", NULL});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(masks),
                                     cmocka_unit_test(switching)};
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
