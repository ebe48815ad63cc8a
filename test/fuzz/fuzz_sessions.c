/*
 * libFuzzer: bytes as changes of a sound session's state.json, frames.jsonl and late.jsonl. Whatever they
 * say, what is exported is JSON, and a head goes on with the folder or says why not.
 *
 * The first byte chooses the file; 0xff between bytes is where the next file's begin. Else the bytes are the
 * file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/session/recover.h"
#include "exporter/session/store.h"

#include "fuzz_dir.h"

#define ID "11111111-1111-4111-8111-111111111111"
#define FRAME(id, tick, util) \
  "{\"session_id\":\"" ID "\",\"session_name\":\"a\",\"tick_ns\":" tick ",\"frame_id\":" id \
  ",\"time\":\"x\",\"gpu_id\":[\"n0:0:H\",\"n1:0:H\"]," \
  "\"client_id\":[\"n0_00000001\"],\"nic_id\":[],\"gpu_util\":[\"" util \
  "\",\"nan\"],\"dram_util\":[\"1.00\"],\"client_seq\":[3]," \
  "\"client_state\":[\"ok\"],\"gpu_bandwidth\":[{\"id1\":\"n0:0:H\"}],\"jobs\":[{\"host\":\"n0\"}]}\n"
static const char *const sound[3] = {
    "{\"session_id\":\"" ID
    "\",\"name\":\"a\",\"start_ns\":1,\"end_ns\":0,\"is_active\":true,\"frame_count\":2,\"frames_lost\":0,"
    "\"late\":1,"
    "\"output_filename\":\"a.json\",\"finishing\":false,\"gsprof\":false,\"named\":false,\"period_ns\":"
    "500000000,\"part\":\".tmp-1\",\"error\":\"\"}",
    FRAME("1", "1000", "5.00") FRAME("2", "2000", "6.00") FRAME("3", "3000", "7.00"),
    "{\"tick_ns\":2000,\"gpu_id\":[\"n1:0:H\",\"n2:0:H\"],\"client_id\":[\"n1_00000002\"],\"gpu_util\":[\"8."
    "00\",\"9.00\"],\"client_seq\":[4],"
    "\"jobs\":[{\"host\":\"n1\"}]}\n"};
static const char *const name[3] = {"state.json", "frames.jsonl", "late.jsonl"};

static void need(int truth) {
  if (!truth)
    abort();
}

/*
 * Are brackets and quotes where they belong? What is inside strings is the writer's, which the unit tests
 * look at.
 */
static void need_nested(const char *p, size_t n) {
  char open[256];
  unsigned depth = 0;
  bool text = false;
  for (const char *end = p + n; p < end; p++) {
    if (text && *p == '\\')
      p++;
    else if (*p == '"')
      text = !text;
    else if (!text && (*p == '{' || *p == '['))
      need(depth < sizeof open), open[depth++] = *p;
    else if (!text && (*p == '}' || *p == ']'))
      need(depth && open[--depth] == (*p == '}' ? '{' : '['));
    else if (!text && *p == ',')
      need(p[1] != ',' && p[1] != ']' && p[1] != '}');
  }
  need(!text && !depth);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char path[128], why[256];
  static int made;
  if (!made)
    need(!chdir(fuzz_dir("sessions")) && (made = 1));
  need(!system("rm -rf s *.json .tmp-*") || made);
  (void)!system("mkdir -p s/" ID);
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "s/" ID "/%s", name[i]);
    FILE *f = fopen(path, "w");
    need(f != NULL);
    if (size && data[0] % 3 == i && data[0] & 0x80)
      fwrite(data + 1, 1, size - 1, f);
    else {
      char text[4096];
      size_t n = strlen(sound[i]);
      memcpy(text, sound[i], n);
      for (size_t k = 1; size && data[0] % 3 == i && k + 3 <= size; k += 3) { /* where, and what */
        size_t at = (size_t)(data[k] | data[k + 1] << 8);
        if (at < n)
          text[at] = (char)data[k + 2];
        else if (at > 0xff00)
          n = data[k + 2] * n / 256;
      }
      fwrite(text, 1, n, f);
    }
    fclose(f);
  }
  struct ni_session *list = NULL;
  int n = ni_store_read("s", &list, why, sizeof why);
  need(n >= 0);
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  int e = ni_store_export("s", "a", f, why, sizeof why);
  fclose(f);
  if (e == 0)
    need_nested(text, bytes);
  free(text);
  free(list);
  struct ni_store *s;
  struct ni_session out;
  struct ni_store_options o = {.data = "s", .output = ".", .period_ns = 500000000};
  if (ni_store_open(&s, &o, why, sizeof why) == 0) {
    if (ni_store_running(s))
      need(ni_store_stop(s, NULL, 1000000000, &out, why, sizeof why) == 0);
    ni_store_close(s);
  }
  return 0;
}
