/* The nth allocation of the plugin fails (rule "malloc=ENOMEM@N", fault.h). Preload it. */
#include "fault.h"

static struct rule rules[] = {{.call = "malloc"}, {.call = NULL}};

#define EXPORT __attribute__((visibility("default")))
#define REFUSED verdict(&rules[0], CALLER)

/* dlsym may allocate before malloc is known: from here. Never freed. */
static char early[4096];
static _Atomic size_t early_used;
static void *early_get(size_t n) {
  size_t at = atomic_fetch_add(&early_used, (n + 15) & ~(size_t)15);
  return at + n <= sizeof early ? early + at : NULL;
}
static int is_early(const void *p) {
  return (const char *)p >= early && (const char *)p < early + sizeof early;
}

static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t), *(*real_realloc)(void *, size_t);
static void *(*real_aligned)(size_t, size_t);
static void (*real_free)(void *);
static void look_up(void) {
  static _Thread_local int busy;
  if (busy)
    return;
  busy = 1;
  *(void **)&real_free = dlsym(RTLD_NEXT, "free");
  *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
  *(void **)&real_aligned = dlsym(RTLD_NEXT, "aligned_alloc");
  *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
  *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
  busy = 0;
}
static void *no_memory(void) { return errno = ENOMEM, NULL; }

EXPORT void *malloc(size_t n) {
  if (!real_malloc)
    look_up();
  if (!real_malloc)
    return early_get(n);
  return REFUSED ? no_memory() : real_malloc(n);
}
EXPORT void *calloc(size_t k, size_t n) {
  if (!real_malloc)
    look_up();
  if (!real_malloc)
    return early_get(k * n);
  return REFUSED ? no_memory() : real_calloc(k, n);
}
EXPORT void *realloc(void *p, size_t n) {
  if (!real_malloc)
    look_up();
  return REFUSED ? no_memory() : real_realloc(p, n);
}
EXPORT void *aligned_alloc(size_t a, size_t n) {
  if (!real_malloc)
    look_up();
  return REFUSED ? no_memory() : real_aligned(a, n);
}
EXPORT void free(void *p) {
  if (p && !is_early(p))
    real_free(p);
}
