/*
 * Every setting: default, bounds, refusals; hostile values in every variable; docs/settings.md
 * against the table. `test_config --markdown` prints the tables of docs/settings.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/settings/config.h"
#include "plugin/settings/job.h"
#include "test/unit/exporter/json_check.h"

static char messages[65536];
static int n_messages;

static void collect(void *arg, const char *text) {
  (void)arg;
  assert_null(strpbrk(text, "\n\x1b"));
  assert_true(strlen(messages) + strlen(text) + 2 < sizeof messages);
  strcat(messages, text);
  strcat(messages, "\n");
  n_messages++;
}

static struct ni_config read_config(void) {
  struct ni_config c;
  messages[0] = 0;
  n_messages = 0;
  ni_config_read(&c, collect, NULL);
  return c;
}

static int clean_environment(void **state) {
  (void)state;
  return clearenv();
}

static void assert_defaults(const struct ni_config *c) {
  assert_false(c->enable);
  assert_true(c->dump_thread);
  assert_false(c->verbose);
  assert_true(c->control_lines);
  assert_true(c->enable_p2p);
  assert_false(c->require_kernel_timing);
  assert_true(c->pool_grow);
  assert_int_equal(c->format, NI_FORMAT_JSONL_GZ);
  assert_int_equal(c->interval_us, 1000000);
  assert_int_equal(c->min_size_bytes, 0);
  assert_int_equal(c->coll_pool_slots, 256);
  assert_int_equal(c->p2p_pool_slots, 256);
  assert_int_equal(c->pool_max_bytes, 268435456);
  assert_int_equal(c->file_max_bytes, 0);
  assert_int_equal(c->dir_max_bytes, 0);
  assert_int_equal(c->keep_seconds, 0);
  assert_string_equal(c->dump_dir, "nccl-inspector-%j");
}

static void defaults(void **state) {
  (void)state;
  struct ni_config c = read_config();
  assert_defaults(&c);
  assert_int_equal(n_messages, 0);
  char json[NI_PAIRS_TEXT_BYTES];
  assert_int_equal(ni_config_settings_json(&c, json, sizeof json), 2);
  assert_string_equal(json, "{}");
  assert_int_equal(ni_config_settings_json(&c, json, 100), 0);
  ni_config_print(&c, collect, NULL);
  assert_int_equal(n_messages, 0);
  /* An empty value is not a value. */
  setenv("NCCL_INSPECTOR_ENABLE", "", 1);
  setenv("NCCL_INSPECTOR_DUMP_DIR", "", 1);
  c = read_config();
  assert_defaults(&c);
  assert_int_equal(n_messages, 0);
}

static void values(void **state) {
  (void)state;
  setenv("NCCL_INSPECTOR_ENABLE", "1", 1);
  setenv("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "500", 1);
  setenv("NCCL_INSPECTOR_DUMP_DIR", "/x/%h", 1);
  setenv("NCCL_INSPECTOR_DUMP_FORMAT", "log.gz", 1);
  setenv("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", "8k", 1);
  setenv("NCCL_INSPECTOR_POOL_MAX_BYTES", "1G", 1);
  setenv("NCCL_INSPECTOR_POOL_GROW", "0", 1);
  setenv("NCCL_INSPECTOR_COLL_POOL_SIZE", "32", 1);
  setenv("NCCL_PROFILE_COLL_POOL_SIZE", "64", 1);
  setenv("NCCL_PROFILE_P2P_POOL_SIZE", "128", 1);
  struct ni_config c = read_config();
  assert_int_equal(n_messages, 0);
  assert_true(c.enable);
  assert_int_equal(c.interval_us, 500);
  assert_string_equal(c.dump_dir, "/x/%h");
  assert_int_equal(c.format, NI_FORMAT_LOG_GZ);
  assert_string_equal(ni_format_suffix(c.format), ".log.gz");
  assert_true(ni_format_compressed(c.format));
  assert_int_equal(c.min_size_bytes, 8192);
  assert_int_equal(c.pool_max_bytes, 1 << 30);
  assert_false(c.pool_grow);
  assert_int_equal(c.coll_pool_slots, 32); /* ours wins */
  assert_int_equal(c.p2p_pool_slots, 128); /* the example plugin's name counts where ours is not set */
  char json[NI_PAIRS_TEXT_BYTES], line[NI_PAIRS_TEXT_BYTES + 2];
  size_t n = ni_config_settings_json(&c, json, sizeof json);
  assert_int_equal(strlen(json), n);
  assert_string_equal(json,
                      "{\"NCCL_INSPECTOR_ENABLE\":\"1\",\"NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS\":"
                      "\"500\",\"NCCL_INSPECTOR_DUMP_DIR\":\"\\/x\\/%h\",\"NCCL_INSPECTOR_DUMP_FORMAT\":"
                      "\"log.gz\",\"NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES\":\"8192\","
                      "\"NCCL_INSPECTOR_COLL_POOL_SIZE\":\"32\",\"NCCL_INSPECTOR_P2P_POOL_SIZE\":\"128\","
                      "\"NCCL_INSPECTOR_POOL_GROW\":\"0\",\"NCCL_INSPECTOR_POOL_MAX_BYTES\":\"1073741824\"}");
  snprintf(line, sizeof line, "%s\n", json);
  assert_true(jc_line_ok(line, n + 1));
  ni_config_print(&c, collect, NULL);
  assert_int_equal(n_messages, 9);
  assert_non_null(strstr(messages, "NCCL_INSPECTOR_DUMP_DIR=/x/%h (default nccl-inspector-%j)\n"));
}

static void refusals_name_everything(void **state) {
  (void)state;
  setenv("NCCL_INSPECTOR_POOL_MAX_BYTES", "12cats", 1);
  struct ni_config c = read_config();
  assert_int_equal(c.pool_max_bytes, 268435456);
  assert_string_equal(messages,
                      "NCCL_INSPECTOR_POOL_MAX_BYTES=\"12cats\" is not accepted: 1048576 to 8589934592, "
                      "suffix k, m or g expected; using the default 268435456.\n");
  static const char *const bad[] = {"-2",         "+1",
                                    " 1",         "1 ",
                                    "0x10",       "1e6",
                                    "",           "9223372036854775808",
                                    "3600000001", "99999999999999999999999999",
                                    "-",          "1k",
                                    "one",        "1\n"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    clearenv();
    setenv("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", bad[i], 1);
    c = read_config();
    assert_int_equal(c.interval_us, 1000000);
    assert_int_equal(n_messages, *bad[i] != 0);
  }
  static const char *const bad_bytes[] = {"1kk", "k", "1t", "1kB", "8589934593", "9223372036854775807g", "0"};
  for (size_t i = 0; i < sizeof bad_bytes / sizeof *bad_bytes; i++) {
    clearenv();
    setenv("NCCL_INSPECTOR_POOL_MAX_BYTES", bad_bytes[i], 1);
    c = read_config();
    assert_int_equal(c.pool_max_bytes, 268435456);
    assert_int_equal(n_messages, 1);
  }
  clearenv();
  setenv("NCCL_INSPECTOR_ENABLE", "2", 1);
  setenv("NCCL_INSPECTOR_DUMP_FORMAT", "xml", 1);
  setenv("NCCL_PROFILE_COLL_POOL_SIZE", "0", 1);
  char longdir[NI_DIR_MAX_BYTES + 1];
  memset(longdir, 'd', sizeof longdir - 1);
  longdir[sizeof longdir - 1] = 0;
  setenv("NCCL_INSPECTOR_DUMP_DIR", longdir, 1);
  c = read_config();
  assert_defaults(&c);
  assert_int_equal(n_messages, 4);
  assert_non_null(
      strstr(messages,
             "NCCL_INSPECTOR_DUMP_FORMAT=\"xml\" is not accepted: jsonl.gz, jsonl, log or log.gz expected"));
  assert_non_null(
      strstr(messages, "NCCL_PROFILE_COLL_POOL_SIZE=\"0\" is not accepted: 1 to 1048576 expected"));
  assert_int_equal(ni_config_read(&c, NULL, NULL), 4); /* without a listener, too */
}

static void intervals_and_no_thread(void **state) {
  (void)state;
  setenv("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "-1", 1);
  assert_int_equal(read_config().interval_us, NI_INTERVAL_NEVER);
  setenv("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "0", 1);
  assert_int_equal(read_config().interval_us, 0);
  setenv("NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", 1);
  struct ni_config c = read_config();
  assert_false(c.dump_thread);
  assert_int_equal(c.interval_us, NI_INTERVAL_NEVER);
  assert_int_equal(n_messages, 1);
  unsetenv("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS");
  c = read_config();
  assert_int_equal(c.interval_us, NI_INTERVAL_NEVER);
  assert_int_equal(n_messages, 0);
}

static void accepted_without_effect_is_said(void **state) {
  (void)state;
  static const char *const names[] = {
      "NCCL_INSPECTOR_OTEL_EXPORT",        "NCCL_INSPECTOR_DUMP_COLL_RING_SIZE",
      "NCCL_INSPECTOR_DUMP_P2P_RING_SIZE", "NCCL_PROFILE_PROXY_CTRL_POOL_SIZE",
      "NCCL_PROFILE_GROUP_API_POOL_SIZE",  "NCCL_INSPECTOR_COMM_POOL_SIZE",
      "NCCL_INSPECTOR_POOL_KEEP",          "NCCL_INSPECTOR_PROXY_OUTPUT_MODE"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    clearenv();
    setenv(names[i], "1", 1);
    read_config();
    assert_int_equal(n_messages, 1);
    assert_non_null(strstr(messages, names[i]));
    assert_non_null(strstr(messages, "accepted"));
  }
  assert_int_equal(setenv("NCCL_INSPECTOR_OTEL_EXPORT", "1", 1), 0);
  read_config();
  assert_non_null(strstr(messages, "nccl-inspector agent --otlp URL"));
  clearenv();
  setenv("NCCL_INSPECTOR_OTEL_EXPORT", "0", 1);
  setenv("NCCL_INSPECTOR_COMMAND", "/opt/nccl-inspector", 1); /* another's, so nothing is said of it */
  read_config();
  assert_int_equal(n_messages, 0);
}

static void misspelt_names_are_reported(void **state) {
  (void)state;
  setenv("NCCL_INSPECTOR_ENABEL", "1", 1);
  read_config();
  assert_int_equal(n_messages, 1);
  assert_non_null(strstr(messages, "NCCL_INSPECTOR_ENABEL is not a setting"));
  for (int i = 0; i < 100; i++) {
    char name[400];
    snprintf(name, sizeof name, "NCCL_INSPECTOR_%0*d\x1b", 300, i);
    setenv(name, "1", 1);
  }
  read_config();
  assert_int_equal(n_messages, 8);
}

/* Hostile text in every variable that is read: no crash, valid JSON, bounded, printable messages. */
static void hostile_values_everywhere(void **state) {
  (void)state;
  static char evil[3][5000];
  memset(evil[0], '\x01', sizeof evil[0] - 1);
  memset(evil[1], '\xff', 700);
  strcpy(evil[2], "\"}\n,/../%n%s%j\x1b[31m\\");
  struct ni_setting_doc d;
  for (int k = 0; k < 3; k++) {
    clearenv();
    for (size_t i = 0; ni_config_doc(i, &d); i++) {
      setenv(d.name, evil[k], 1);
      if (d.fallback)
        setenv(d.fallback, evil[k], 1);
    }
    setenv("SLURM_JOB_ID", evil[k], 1);
    setenv("RANK", evil[k], 1);
    setenv("POD_NAME", evil[k], 1);
    struct ni_config c = read_config();
    char json[NI_PAIRS_TEXT_BYTES + 1];
    size_t n = ni_config_settings_json(&c, json, NI_PAIRS_TEXT_BYTES);
    json[n] = '\n';
    assert_true(jc_line_ok(json, n + 1));
    ni_config_print(&c, collect, NULL);
    struct ni_job j;
    char out[NI_DIR_MAX_BYTES];
    ni_job_read(&j);
    ni_job_dump_dir(&j, c.dump_dir, evil[k], 1, out, sizeof out);
  }
}

static char *render_markdown(void) {
  char *out = NULL;
  size_t n;
  FILE *f = open_memstream(&out, &n);
  struct ni_setting_doc d;
  for (int part = 0; part < 2; part++) {
    fputs(part ? "\n| accepted, no effect | why |\n|---|---|\n"
               : "| variable | default | accepted values | meaning |\n|---|---|---|---|\n",
          f);
    for (size_t i = 0; ni_config_doc(i, &d); i++) {
      if (!d.accepted != !part)
        continue;
      fprintf(f, "| `%s`", d.name);
      if (d.fallback)
        fprintf(f, ", else `%s`", d.fallback);
      if (part)
        fprintf(f, " | %s |\n", d.accepted);
      else
        fprintf(f, " | `%s` | %s | %s |\n", d.value, d.range, d.help);
    }
  }
  fclose(f);
  return out;
}

/* What a sample leaves out is in the roll-ups, or it is said that it is not. */
static void sample_without_rollups_is_said(void **state) {
  (void)state;
  static const char *const offs[] = {"NCCL_INSPECTOR_ROLLUP_SECONDS", "NCCL_INSPECTOR_DUMP_CONTROL_LINES"};
  for (int i = 0; i < 2; i++) {
    setenv(offs[i], "0", 1);
    (void)read_config();
    assert_int_equal(n_messages, 0);
    setenv("NCCL_INSPECTOR_SAMPLE", "1/10", 1);
    (void)read_config();
    assert_int_equal(n_messages, 1);
    assert_non_null(strstr(messages, "in no roll-up"));
    unsetenv(offs[i]);
    (void)read_config();
    assert_int_equal(n_messages, 0);
    unsetenv("NCCL_INSPECTOR_SAMPLE");
  }
}

static void documentation_is_the_table(void **state) {
  (void)state;
  FILE *f = fopen("docs/settings.md", "r");
  if (!f)
    skip(); /* run from elsewhere */
  static char doc[65536];
  doc[fread(doc, 1, sizeof doc - 1, f)] = 0;
  fclose(f);
  char *want = render_markdown(), *from = strstr(doc, "<!-- table -->\n"),
       *to = strstr(doc, "<!-- end of table -->");
  assert_non_null(from);
  assert_non_null(to);
  *to = 0;
  assert_string_equal(from + strlen("<!-- table -->\n"), want);
  free(want);
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--markdown")) {
    char *text = render_markdown();
    fputs(text, stdout);
    free(text);
    return 0;
  }
#define T(f) cmocka_unit_test_setup(f, clean_environment)
  const struct CMUnitTest tests[] = {
      T(defaults),
      T(values),
      T(refusals_name_everything),
      T(intervals_and_no_thread),
      T(accepted_without_effect_is_said),
      T(misspelt_names_are_reported),
      T(hostile_values_everywhere),
      T(sample_without_rollups_is_said),
      T(documentation_is_the_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
