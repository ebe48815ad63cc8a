#include "nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ni_nvml_why(const struct ni_nvml *n, int code, char *out, size_t size) {
  static const struct {
    int code;
    const char *text;
  } known[] = {
      {NI_NVML_NOT_SUPPORTED, "not supported by this GPU or driver"},
      {NI_NVML_NO_PERMISSION, "not permitted: it needs root"},
      {NI_NVML_NO_DRIVER,
       "the NVIDIA driver is not loaded: modprobe nvidia; in a container: start it with the GPUs"},
      {NI_NVML_NO_FUNCTION, "this driver's NVML has no such call"},
      {NI_NVML_LOST,
       "the GPU is lost: it has fallen off the bus; look for Xid 79 in dmesg, and reset or power-cycle it"},
      {NI_NVML_MISMATCH,
       "the NVML library is of another version than the loaded driver: load the new driver's modules or "
       "reboot; in a container: start it anew"},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].code == code) {
      snprintf(out, size, "%s (NVML %d)", known[i].text, code);
      return out;
    }
  const char *text = n && n->error_string ? n->error_string(code) : NULL;
  snprintf(out, size, "NVML says %d%s%.80s", code, text ? ": " : "", text ? text : "");
  return out;
}

static const struct {
  size_t at;
  const char *name, *older;
} calls[] = {
#define NI_NVML_ROW(member, args, name, older) {offsetof(struct ni_nvml, member), name, older},
    NI_NVML_CALLS(NI_NVML_ROW){offsetof(struct ni_nvml, error_string), "nvmlErrorString", NULL},
};

struct ni_nvml *ni_nvml_open(char *why, size_t size) {
  struct ni_nvml *n = calloc(1, sizeof *n);
  *why = 0;
  if (!n || !(n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL))) {
    free(n);
    return NULL;
  }
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    void *found = dlsym(n->library, calls[i].name);
    if (!found && calls[i].older)
      found = dlsym(n->library, calls[i].older);
    memcpy((char *)n + calls[i].at, &found, sizeof found); /* as POSIX has it for pointers to functions */
  }
  const bool has_calls = n->init && n->shutdown && n->count && n->handle;
  if (!has_calls) {
    snprintf(why, size,
             "it has no nvmlInit_v2 or nvmlDeviceGetHandleByIndex_v2: no NVML of a driver since 2012");
  } else {
    int code = n->init();
    if (code == NI_NVML_OK)
      return n;
    ni_nvml_why(n, code, why, size);
  }
  dlclose(n->library);
  free(n);
  return NULL;
}

void ni_nvml_close(struct ni_nvml *n) {
  if (!n)
    return;
  n->shutdown();
  dlclose(n->library);
  free(n);
}
