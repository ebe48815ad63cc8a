#include "clock.h"

#include <errno.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>

#include "file_facts.h"
#endif

#define BASELINE_NS UINT64_C(30000000000) /* half of the longest baseline */
#define TRIES 5

#if defined(__x86_64__)
/* CPUID 0x80000007 EDX bit 8: the counter runs at one rate in all power states. */
static bool tsc_is_invariant(void) {
  unsigned a, b, c, d;
  return __get_cpuid(0x80000000u, &a, &b, &c, &d) && a >= 0x80000007u &&
      __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8));
}

/* The kernel watches the TSC and falls back to a slow clock when sockets disagree or it jumps; then we do,
 * too. Paravirtual clocks are built on the TSC. No such file (a container without /sys): CPUID decides alone.
 */
static bool kernel_distrusts_tsc(void) {
  static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"};
  char name[64];
  ni_file_text("/sys/devices/system/clocksource/clocksource0/current_clocksource", name, sizeof name);
  name[strcspn(name, "\n")] = 0;
  for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
    if (strcmp(name, slow[i]) == 0)
      return true;
  return false;
}
#endif

static enum ni_clock_source choose_source(void) {
#if defined(__x86_64__)
  return tsc_is_invariant() && !kernel_distrusts_tsc() ? NI_CLOCK_TSC : NI_CLOCK_GETTIME;
#elif defined(__aarch64__)
  return NI_CLOCK_CNTVCT; /* the architecture promises one rate and one value for all CPUs */
#else
  return NI_CLOCK_GETTIME;
#endif
}

/* The tightest of TRIES brackets: a preempted one is wide and loses. Realtime in the same bracket, so that
 * its offset to monotonic is as good. */
static struct ni_clock_point read_point(enum ni_clock_source source) {
  struct ni_clock_point best = {0};
  uint64_t best_width = UINT64_MAX;
  for (int i = 0; i < TRIES; i++) {
    uint64_t before = ni_monotonic_ns();
    uint64_t ticks = ni_ticks(source);
    uint64_t real = ni_realtime_ns();
    uint64_t after = ni_monotonic_ns();
    if (after - before >= best_width)
      continue;
    best_width = after - before;
    /* The counter is read a third of the way in, the wall clock at two thirds. */
    best.ticks = ticks;
    best.monotonic_ns = before + best_width / 3;
    best.realtime_ns = real - best_width / 3;
  }
  if (source == NI_CLOCK_GETTIME)
    best.ticks = best.monotonic_ns;
  return best;
}

static void set_slope(struct ni_clock *c, double ns_per_tick) {
  c->ns_per_tick = ns_per_tick;
  c->mult = (uint64_t)(ns_per_tick * (double)(UINT64_C(1) << 40) + 0.5);
}

static void start_line(struct ni_clock *c, const struct ni_clock_point *p) {
  c->newest = c->base = c->middle = *p;
  c->n_samples = 1;
}

int ni_clock_add_sample(struct ni_clock *c, const struct ni_clock_point *p) {
  if (c->source == NI_CLOCK_GETTIME) {
    c->newest = *p;
    c->n_samples++;
    return 0;
  }
  if (c->n_samples == 0) {
    start_line(c, p);
    return 0;
  }
  /* A counter that went back (the VM was moved) cannot belong to the old line. */
  bool jumped = p->ticks <= c->newest.ticks;
  if (p->monotonic_ns <= c->newest.monotonic_ns)
    return -ERANGE;
  if (!jumped && c->mult) {
    int64_t off = (int64_t)(ni_clock_monotonic_ns(c, p->ticks) - p->monotonic_ns);
    uint64_t since = p->monotonic_ns - c->newest.monotonic_ns;
    /* NTP may slew by 500 ppm, and the first slopes come from short baselines. */
    int64_t allowed = NI_CLOCK_JUMP_NS + (int64_t)(since / 1000);
    jumped = off > allowed || off < -allowed;
  }
  if (jumped) {
    start_line(c, p); /* the slope stays: a counter's rate outlives its value */
    c->n_jumps++;
    return 1;
  }
  double slope = (double)(p->monotonic_ns - c->base.monotonic_ns) / (double)(p->ticks - c->base.ticks);
  if (!(slope > 0.01 && slope < 1000))
    return -ERANGE; /* 1 MHz .. 100 GHz */
  set_slope(c, slope);
  c->newest = *p;
  c->n_samples++;
  if (p->monotonic_ns - c->middle.monotonic_ns > BASELINE_NS) {
    c->base = c->middle;
    c->middle = *p;
  }
  return 0;
}

int ni_clock_sample(struct ni_clock *c) {
  struct ni_clock_point p = read_point(c->source);
  return ni_clock_add_sample(c, &p);
}

void ni_clock_init(struct ni_clock *c, bool force_gettime) {
  memset(c, 0, sizeof *c);
  c->source = force_gettime ? NI_CLOCK_GETTIME : choose_source();
  if (c->source == NI_CLOCK_GETTIME) {
    set_slope(c, 1.0);
    ni_clock_sample(c);
    return;
  }
  /* A first slope, good to some 100 ppm, so that conversions work from the first moment; the dump thread's
   * samples improve it tick by tick. */
  ni_clock_sample(c);
  uint64_t until = c->newest.monotonic_ns + 500000;
  while (ni_monotonic_ns() < until)
    continue;
  /* the counter stands still or makes no sense: do not use it */
  if (ni_clock_sample(c) != 0 || c->mult == 0) {
    ni_clock_init(c, true);
  }
}

const char *ni_clock_source_name(enum ni_clock_source s) {
  return s == NI_CLOCK_TSC ? "tsc" : s == NI_CLOCK_CNTVCT ? "cntvct" : "clock_gettime";
}
