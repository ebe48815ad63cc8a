/* What the machine gives: shared memory, clocks, limits, GPUs. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include "exporter/base/text/plural.h"
#include "machine.h"
#include "ni_box.h"

static void shared_memory(struct ni_doctor *d) {
  const char *dir = d->shm_dir ? d->shm_dir : NI_BOX_DIR;
  struct statvfs v;
  if (statvfs(dir, &v) < 0 || access(dir, W_OK | X_OK) < 0) {
    ni_doctor_add(d, "shm", NI_DOC_WARNING,
                  "NCCL itself wants it too; containers get it with --ipc=host or --shm-size.", "%s cannot be used: %s",
                  dir, strerror(errno));
    return;
  }
  double free_mb = (double)v.f_bavail * (double)v.f_frsize / 1e6,
         size_mb = (double)v.f_blocks * (double)v.f_frsize / 1e6;
  if (free_mb < 64)
    ni_doctor_add(
        d, "shm", NI_DOC_WARNING, "Containers get more with --shm-size=1g or --ipc=host; else remove what fills it.",
        "%s has %.0f of %.0f MB free: too little for NCCL's own buffers and for records that outlive a killed process",
        dir, free_mb, size_mb);
  else
    ni_doctor_add(d, "shm", NI_DOC_OK, NULL, "%s has %.1f of %.1f GB free; at most a quarter of that is used", dir,
                  free_mb / 1e3, size_mb / 1e3);
}

static void clocks(struct ni_doctor *d) {
  struct timex t;
  char source[64] = "unknown";
  memset(&t, 0, sizeof t);
  int state = adjtimex(&t);
  if (state < 0)
    ni_doctor_add(d, "clock", NI_DOC_NOTE, NULL, "whether the clock is synchronised cannot be asked: %s",
                  strerror(errno));
  else if (state == TIME_ERROR || (t.status & STA_UNSYNC))
    ni_doctor_add(d, "clock", NI_DOC_WARNING, "Start chronyd, ntpd or systemd-timesyncd on every host.",
                  "the kernel calls this host's clock not synchronised: times of different hosts cannot be laid side "
                  "by side; durations and "
                  "bandwidths are not touched by this");
  else ni_doctor_add(d, "clock", NI_DOC_OK, NULL, "synchronised, error at most %.1f ms", (double)t.maxerror / 1e3);
  FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
  if (f) {
    if (fscanf(f, "%63s", source) != 1) strcpy(source, "unknown");
    fclose(f);
    if (strcmp(source, "tsc") != 0 && strcmp(source, "arch_sys_counter") != 0 && strcmp(source, "kvm-clock") != 0)
      ni_doctor_add(d, "clock", NI_DOC_NOTE, NULL,
                    "the kernel's clock source is %s: reading the time is slower, for the plugin as for NCCL", source);
  }
}

static void limits(struct ni_doctor *d) {
  struct rlimit r;
  if (getrlimit(RLIMIT_FSIZE, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
    ni_doctor_add(d, "limits", r.rlim_cur < 1 << 20 ? NI_DOC_PROBLEM : NI_DOC_NOTE,
                  r.rlim_cur < 1 << 20 ? "ulimit -f unlimited" : NULL,
                  "files may have %llu bytes (ulimit -f); the plugin begins a new one when that is reached",
                  (unsigned long long)r.rlim_cur);
  if (getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
    ni_doctor_add(d, "limits", NI_DOC_NOTE, NULL,
                  "address space is limited to %.1f GB (ulimit -v); NCCL_INSPECTOR_POOL_MAX_BYTES of it is reserved",
                  (double)r.rlim_cur / 1e9);
  if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < 256)
    ni_doctor_add(d, "limits", NI_DOC_WARNING, "ulimit -n 4096",
                  "only %llu open files are allowed; NCCL needs many sockets", (unsigned long long)r.rlim_cur);
}

static void gpus(struct ni_doctor *d) {
  glob_t g;
  char line[256] = "";
  size_t n = glob("/dev/nvidia[0-9]*", 0, NULL, &g) == 0 ? g.gl_pathc : 0;
  globfree(&g);
  FILE *f = fopen("/proc/driver/nvidia/version", "re");
  if (f) {
    if (!fgets(line, sizeof line, f)) line[0] = 0;
    line[strcspn(line, "\n")] = 0;
    fclose(f);
  }
  if (n) ni_doctor_add(d, "gpu", NI_DOC_OK, NULL, "%zu %s%s%s", n, ni_plural(n, "GPU", "GPUs"), *line ? ", " : "", line);
  else
    ni_doctor_add(d, "gpu", NI_DOC_NOTE,
                  "On a login node this is as it should be; run doctor on a compute node for the rest.",
                  "no NVIDIA GPU is visible here");
}

void ni_doctor_machine(struct ni_doctor *d) {
  shared_memory(d);
  clocks(d);
  limits(d);
  gpus(d);
}
