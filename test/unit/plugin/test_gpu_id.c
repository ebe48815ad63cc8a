/* Against made-up drivers, built here: with and without the newer UUID call, with and without a context. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugin/os/gpu_id.h"

static const char source[] =
    "#include <string.h>\n"
    "int cuCtxGetDevice(int *d) { *d = 3; return NO_CONTEXT ? 201 : 0; }\n"
    "#if UUID_V2\n"
    "int cuDeviceGetUuid_v2(unsigned char *u, int d) { for (int i = 0; i < 16; i++) u[i] = 0xf0 + i; return "
    "d != 3; }\n"
    "#endif\n"
    "int cuDeviceGetUuid(unsigned char *u, int d) { for (int i = 0; i < 16; i++) u[i] = i; return d != 3; }\n"
    "int cuDeviceGetPCIBusId(char *s, int n, int d) { strncpy(s, \"0000:1B:00.0\", n); return d != 3 || "
    "NO_PCI; }\n";

static char dir[] = "/tmp/ni-test-gpu-XXXXXX";

/* Builds and loads a driver; NULL where there is no compiler. */
static void *driver(const char *flags) {
  char path[256], cmd[1024];
  snprintf(path, sizeof path, "%s/libcuda.so.1", dir);
  snprintf(cmd, sizeof cmd, "cc -shared -fPIC %s -Wl,-soname,libcuda.so.1 -o %s -x c - 2>/dev/null", flags,
           path);
  FILE *p = popen(cmd, "w");
  if (!p)
    return NULL;
  fwrite(source, 1, sizeof source - 1, p);
  if (pclose(p) != 0)
    return NULL;
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static int setup(void **state) {
  (void)state;
  return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state) {
  (void)state;
  char path[256];
  snprintf(path, sizeof path, "%s/libcuda.so.1", dir);
  unlink(path);
  return rmdir(dir);
}

static void no_driver(void **state) {
  (void)state;
  struct ni_gpu_id id = {5, "x", "y"};
  assert_int_equal(ni_gpu_id_read(&id), -ENOENT);
  assert_int_equal(id.index, -1);
  assert_string_equal(id.uuid, "");
  assert_string_equal(id.pci, "");
  assert_null(dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW)); /* and we did not load one */
}

static void known_gpu(void **state) {
  (void)state;
  struct ni_gpu_id id;
  void *lib = driver("-DNO_CONTEXT=0 -DUUID_V2=1 -DNO_PCI=0");
  if (!lib)
    skip();
  assert_int_equal(ni_gpu_id_read(&id), 0);
  assert_int_equal(id.index, 3);
  assert_string_equal(id.uuid, "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
  assert_string_equal(id.pci, "0000:1b:00.0");
  dlclose(lib);
  assert_int_equal(ni_gpu_id_read(&id), -ENOENT); /* no reference was kept */
}

static void old_driver(void **state) {
  (void)state;
  struct ni_gpu_id id;
  void *lib = driver("-DNO_CONTEXT=0 -DUUID_V2=0 -DNO_PCI=1");
  if (!lib)
    skip();
  assert_int_equal(ni_gpu_id_read(&id), 0);
  assert_int_equal(id.index, 3);
  assert_string_equal(id.uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  assert_string_equal(id.pci, "");
  dlclose(lib);
}

static void no_context(void **state) {
  (void)state;
  struct ni_gpu_id id;
  void *lib = driver("-DNO_CONTEXT=1 -DUUID_V2=1 -DNO_PCI=0");
  if (!lib)
    skip();
  assert_int_equal(ni_gpu_id_read(&id), -ENODATA);
  assert_int_equal(id.index, -1);
  assert_string_equal(id.uuid, "");
  dlclose(lib);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_driver), cmocka_unit_test(known_gpu),
                                     cmocka_unit_test(old_driver), cmocka_unit_test(no_context)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
