/*
 * libFuzzer: bytes as environment variables "NAME=value" separated by NUL; a name that begins with a byte
 * below 64 is that row of the settings' table. Reading must not crash, every value must be in its range
 * afterwards, messages are sentences without control characters, the settings as JSON are printable text in
 * the room that is promised, and the directory with its tokens put in is a terminated path or refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/settings/config.h"
#include "plugin/settings/job.h"

static void need(int truth) {
  if (!truth)
    abort();
}

static void hear(void *arg, const char *text) {
  size_t n = strlen(text);
  ++*(int *)arg;
  need(n > 0 && n < 4096);
  for (size_t i = 0; i < n; i++)
    need((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct ni_config c;
  static struct ni_job job;
  static char json[NI_PAIRS_TEXT_BYTES], dir[NI_DIR_MAX_BYTES];
  static const char *const others[] = {"SLURM_PROCID", "RANK",     "WORLD_SIZE",
                                       "SLURM_JOB_ID", "POD_NAME", "KUBERNETES_SERVICE_HOST",
                                       "JOB_NAME",     "PMI_RANK"};
  int heard = 0;
  char *copy = malloc(size + 1), *end = copy + size, host[64] = "host";
  need(copy != NULL);
  memcpy(copy, data, size);
  *end = 0;
  clearenv();
  for (char *p = copy; p < end; p += strlen(p) + 1) {
    struct ni_setting_doc row;
    unsigned first = (unsigned char)*p;
    if (first < 48 && first > 0 && ni_config_doc(first - 1, &row))
      (void)setenv(row.name, p + 1, 1);
    else if (first < 64 && first > 0)
      (void)setenv(others[first % 8], p + 1, 1);
    else if (strchr(p, '=') && *p != '=')
      (void)putenv(p);
    if (first >= 128)
      memcpy(host, p, strnlen(p, sizeof host - 1));
  }
  int refused = ni_config_read(&c, hear, &heard);
  need(refused >= 0 && heard >= refused);
  need(c.interval_us >= -1 && c.interval_us <= INT64_C(3600000000));
  need(c.format < NI_FORMAT_COUNT);
  need(c.coll_pool_slots >= 1 && c.coll_pool_slots <= 1 << 20 && c.p2p_pool_slots >= 1 &&
       c.p2p_pool_slots <= 1 << 20);
  need(c.pool_max_bytes >= 1 << 20 && c.pool_max_bytes <= UINT64_C(8) << 30);
  need(c.keep_seconds <= 1000000000);
  need(memchr(c.dump_dir, 0, sizeof c.dump_dir) != NULL && c.dump_dir[0]);
  ni_config_print(&c, hear, &heard);
  size_t n = ni_config_settings_json(&c, json, sizeof json);
  need(n >= 2 && n < sizeof json && json[n] == 0 && strlen(json) == n && json[0] == '{' &&
       json[n - 1] == '}');
  for (size_t i = 0; i < n; i++)
    need((unsigned char)json[i] >= 0x20);
  for (size_t cap = 0; cap < 64; cap += 9)
    need(ni_config_settings_json(&c, json, cap) < (cap ? cap : 1));
  ni_job_read(&job);
  need(job.n_env <= NI_PAIRS_WRITTEN && job.rank >= -1 && job.world_size >= -1 && job.job_id[0] &&
       !strpbrk(job.job_id, "/\\ \n"));
  int len = ni_job_dump_dir(&job, c.dump_dir, host, 12345, dir, sizeof dir);
  need(len == -ENAMETOOLONG ? dir[0] == 0 : len > 0 && (size_t)len == strlen(dir));
  char small[10];
  len = ni_job_dump_dir(&job, c.dump_dir, host, 12345, small, sizeof small);
  need(len < (int)sizeof small && memchr(small, 0, sizeof small) != NULL);
  clearenv(); /* putenv gave away pieces of copy */
  free(copy);
  return 0;
}
