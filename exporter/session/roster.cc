#define SIMDJSON_EXCEPTIONS 0
#include <errno.h>
#include <fcntl.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>

extern "C" {
#include "exporter/base/text/json_write.h"
#include "folder.h"
#include "roster.h"
}

namespace dom = simdjson::dom;

enum : off_t { MOST = 256 << 20 };

static void put(struct ni_json *j, const struct ni_client *c) {
  ni_json_object(j, nullptr);
  ni_json_text(j, "id", c->id);
  ni_json_text(j, "host", c->host);
  ni_json_text(j, "uuid", c->uuid);
  ni_json_text(j, "version", c->version);
  ni_json_u64(j, "epoch", c->epoch);
  ni_json_array(j, "gpus");
  for (uint32_t i = 0; c->last && i < c->last->n_gpus; i++) {
    ni_json_object(j, nullptr);
    ni_json_i64(j, "index", c->last->gpu[i].index);
    ni_json_text(j, "name", c->last->gpu[i].name);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  ni_json_end_object(j);
}

void ni_roster_text(const struct ni_grid *g, struct ni_buffer *out) {
  struct ni_client *const *list;
  size_t n = ni_grid_clients(g, &list);
  *out = {};
  FILE *f = open_memstream(&out->text, &out->n);
  for (size_t i = 0; f && i < n; i++) {
    struct ni_json j;
    ni_json_begin(&j, f);
    put(&j, list[i]);
    putc('\n', f);
  }
  out->failed = !f || fclose(f) != 0;
  out->cap = out->n;
}

static bool take(dom::object o, ni_rostered *r) {
  auto text = [&](const char *key, char *to, size_t cap) {
    const char *t;
    bool there = !o[key].get_c_str().get(t);
    snprintf(to, cap, "%s", there ? t : "");
    return there && *t;
  };
  dom::array gpus;
  *r = {};
  if (!text("id", r->id, sizeof r->id) || !text("host", r->host, sizeof r->host))
    return false;
  text("uuid", r->uuid, sizeof r->uuid);
  text("version", r->version, sizeof r->version);
  if (o["epoch"].get(r->epoch))
    r->epoch = 0;
  if (o["gpus"].get(gpus) || !gpus.size() || !(r->gpus = ni_sample_new((uint32_t)gpus.size(), 0, 0, 0)))
    return true;
  ni_sample_gpu *to = r->gpus->gpu;
  for (dom::element e : gpus) {
    int64_t index;
    const char *name;
    to->index = e["index"].get(index) ? 0 : (int32_t)index;
    if (!e["name"].get_c_str().get(name))
      snprintf(to->name, sizeof to->name, "%s", name);
    to++;
  }
  return true;
}

int ni_roster_read(int dir, void (*each)(void *arg, ni_rostered *r), void *arg) try {
  int fd = ni_store_file(dir, NI_ROSTER);
  struct stat st;
  if (fd < 0)
    return fd == -ENOENT ? 0 : fd;
  FILE *f = fstat(fd, &st) == 0 && st.st_size < MOST ? fdopen(fd, "r") : nullptr;
  if (!f)
    return close(fd), -EINVAL;
  char *line = nullptr;
  size_t cap = 0;
  dom::parser json;
  for (ssize_t n; (n = getline(&line, &cap, f)) > 0;) {
    dom::object o;
    ni_rostered r;
    if (!json.parse(line, (size_t)n).get(o) && take(o, &r))
      each(arg, &r);
  }
  free(line);
  fclose(f);
  return 0;
} catch (const std::bad_alloc &) {
  return -ENOMEM;
}
