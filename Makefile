# NCCL Inspector: the profiler plugin, its offline command and a simulated NCCL.
#
#   make               build/libnccl-profiler-inspector.so, build/nccl-inspector, build/nccl-sim
#   make check         unit tests, scenarios and golden output       make help   every target
#
# Files are found by their place: a new .c file in a room of format/, plugin/, exporter/ or test/ needs no line here.
# Which libraries there are is asked once a build folder (scripts/config.mk). Set V=1 to see the commands; make -s says nothing.
# CFLAGS, CXXFLAGS, CPPFLAGS and LDFLAGS of the user are appended to ours.

BUILD   ?= build
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
BINDIR  ?= $(PREFIX)/bin
MANDIR  ?= $(PREFIX)/share/man
DESTDIR ?=
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
V ?= 0
Q := $(if $(filter 1,$(V)),,@)
say = @$(if $(filter 1,$(V))$(findstring s,$(firstword -$(MAKEFLAGS))),:,printf '  %-7s %s\n' '$(1)' '$(2)')

include scripts/version.mk

WARN   := -Wall -Wextra -Wno-unused-parameter -Wno-c99-designator -Wshadow -Wvla -Wpointer-arith -Wundef -Wformat=2 -Werror=format-security $(WERROR)
CWARN  := $(WARN) -Wstrict-prototypes -Wmissing-prototypes
OPT    ?= -O2 -g
SAN    ?=
# A variant may compile the rooms that do not compute with other flags (test/test.mk); otherwise all are compiled with the same.
OPT_COLD  ?= $(OPT)
HOT_ROOMS := format plugin exporter/base exporter/input exporter/index exporter/model/ledger test/nccl_sim
opt        = $(if $(filter $(HOT_ROOMS:%=$(BUILD)/obj/%/%),$@),$(OPT),$(OPT_COLD))
cflags   = -std=c11 -D_GNU_SOURCE $(opt) $(harden) $(CWARN) -fno-strict-aliasing $(SAN) -I. -Iinclude $(CPPFLAGS) -MMD -MP $(CFLAGS)
cxxflags = -std=c++17 -D_GNU_SOURCE $(opt) $(harden) $(WARN) $(SAN) -I. -Iinclude $(CPPFLAGS) -MMD -MP $(CXXFLAGS)
VERSION_FLAGS = -DNI_VERSION='"$(NI_VERSION)"' -DNI_GIT_REV='"$(NI_GIT_REV)"'

# ---- libraries: a missing one switches its feature off with one clear line ------------------------------------
comma := ,
include scripts/config.mk
include scripts/hardening.mk
# What compresses is linked into the plugin statically and hidden: a PyTorch process has several zlibs of its own.
CODEC_A := $(if $(LIBDEFLATE),-l:libdeflate.a,$(ZLIB_A))

# ---- format: what both halves share; built as the plugin is, because it goes into the plugin ----------------
FORMAT_SRC := $(sort $(wildcard format/*.c))
FORMAT_OBJ := $(FORMAT_SRC:%.c=$(BUILD)/obj/%.o)
FORMAT_LIB := $(BUILD)/libformat.a

# ---- plugin ------------------------------------------------------------------------------------------------
PLUGIN_SRC := $(sort $(wildcard plugin/*/*.c plugin/*/*/*.c))
PLUGIN_OBJ := $(PLUGIN_SRC:%.c=$(BUILD)/obj/%.o)
PLUGIN_SO  := $(BUILD)/libnccl-profiler-inspector.so
PLUGIN_CFLAGS = $(if $(LIBDEFLATE),-DNI_HAVE_LIBDEFLATE=1) -fPIC -fvisibility=hidden -fno-semantic-interposition -ftls-model=initial-exec $(harden_plugin) $(VERSION_FLAGS)
$(filter $(BUILD)/obj/plugin/callbacks/% $(BUILD)/obj/plugin/slots/% $(BUILD)/obj/plugin/life/abi_%,$(PLUGIN_OBJ)): harden_plugin += $(HARDEN_CALLBACKS)
# -z nodelete: NCCL's unload paths are unsafe (docs/embedding.md).
PLUGIN_LDFLAGS = -shared -Wl,-soname,libnccl-profiler-inspector.so -Wl,--version-script=plugin/life/plugin.map \
  -Wl,-z,nodelete $(HARDEN_SO) $(if $(SAN),,-Wl,-z,defs) -Wl,--exclude-libs,ALL
# glibc before 2.34 has pthread and dl functions in libraries of their own. The .so names them as needed although a newer
# glibc to link against no longer asks for it.
PLUGIN_LIBS = -Wl,--push-state,--no-as-needed $(OLD_LIBS) -Wl,--pop-state -lpthread -ldl -lm

# ---- exporter ----------------------------------------------------------------------------------------------
LIVE_ROOMS := exporter/agent exporter/rpc exporter/http exporter/head
OTHER_ROOMS := $(LIVE_ROOMS) exporter/mpi
EXP_SRC    := $(filter-out $(OTHER_ROOMS:%=%/%),$(sort $(wildcard exporter/*/*.c exporter/*/*/*.c exporter/*/*/*/*.c)))
EXP_CXX    := $(filter-out $(OTHER_ROOMS:%=%/%),$(sort $(wildcard exporter/*/*.cc exporter/*/*/*.cc exporter/*/*/*/*.cc)))
EXP_OBJ    := $(EXP_SRC:%.c=$(BUILD)/obj/%.o) $(EXP_CXX:%.cc=$(BUILD)/obj/%.o)
EXP_LIBOBJ := $(filter-out $(BUILD)/obj/exporter/cmds/main.o,$(EXP_OBJ))
# Half of simdjson's header, 0.6 s for each source that has it, is for processors that our code is not compiled for. The library has that
# as well, and takes at run time what the machine can.
JSON_FLAGS := $(if $(findstring -march=,$(CXXFLAGS)),,$(foreach x86,ICELAKE HASWELL WESTMERE,-DSIMDJSON_IMPLEMENTATION_$(x86)=0))
EXP_LIB    := $(BUILD)/libexporter.a
EXP_BIN    := $(BUILD)/nccl-inspector
EXP_FLAGS  := $(VERSION_FLAGS) $(if $(HAVE_ISAL),-DNI_HAVE_ISAL=1) $(if $(HAVE_ZSTD),-DNI_HAVE_ZSTD=1) $(if $(HAVE_SNAPPY),-DNI_HAVE_SNAPPY=1) \
              $(if $(HAVE_SQLITE_A)$(HAVE_SQLITE),-DNI_HAVE_SQLITE=1)
SQLITE_LIB := $(if $(HAVE_SQLITE_A),-l:libsqlite3.a,$(if $(HAVE_SQLITE),-lsqlite3))
EXP_LIBS   := -lsimdjson $(if $(HAVE_ISAL),-lisal) $(if $(HAVE_ZSTD),-lzstd) $(if $(HAVE_SNAPPY),-lsnappy) $(SQLITE_LIB) -lz -lpthread -ldl -lm

# `agent`, `top`, `head` and `session` are a program of their own (exporter/cmds/live.h): what they link nobody else has to load.
# gRPC, between agents and the head; without it exporter/rpc/none.c says so.
HAVE_RPC   := $(and $(HAVE_NGHTTP2),$(HAVE_GNUTLS))
NOT_RPC    := $(if $(HAVE_RPC),%/rpc/none.c,%/rpc/call.c %/rpc/conn.c %/rpc/rpc.c)
LIVE_OBJ   := $(patsubst %,$(BUILD)/obj/%.o,$(basename $(sort $(filter-out $(NOT_RPC),$(wildcard $(foreach r,$(LIVE_ROOMS),$(r)/*.c $(r)/*.cc $(r)/*/*.c $(r)/*/*.cc))))))
LIVE_BIN   := $(if $(and $(HAVE_MICROHTTPD),$(HAVE_CURL),$(HAVE_CURSES)),$(BUILD)/nccl-inspector-live)
LIVE_LIBS  := -lmicrohttpd -lcurl -lncursesw -ltinfo $(if $(HAVE_RPC),-lnghttp2 -lgnutls)
# All of it but main(): for tests.
LIVE_LIB   := $(if $(LIVE_BIN),$(BUILD)/liblive.a)

# `summary`, `check` and `trace` by all ranks of an MPI job (docs/scale.md), for whichever MPI: make mpi MPICC=mpicc.mpich MPI_BIN=file
MPICC   ?= mpicc
MPI_SRC := $(sort $(wildcard exporter/mpi/*.c))
MPI_BIN ?= $(BUILD)/nccl-inspector-mpi

# ---- simulator ---------------------------------------------------------------------------------------------
SIM_SRC := $(sort $(wildcard test/nccl_sim/*.c test/nccl_sim/*/*.c))
SIM_OBJ := $(SIM_SRC:%.c=$(BUILD)/obj/%.o)
SIM_BIN := $(BUILD)/nccl-sim

include packaging/portable.mk

# ---- tests -------------------------------------------------------------------------------------------------
UNIT_SRC  := $(filter-out $(if $(LIVE_LIB),,test/unit/agent/%),$(sort $(wildcard test/unit/*/test_*.c)))
UNIT_BIN  := $(addprefix $(BUILD)/test/unit/,$(basename $(notdir $(UNIT_SRC))))
TPLUG_SRC := $(filter-out test/plugins/mask.c,$(sort $(wildcard test/plugins/*.c)))
TPLUG_SO  := $(TPLUG_SRC:test/plugins/%.c=$(BUILD)/test/%.so)
# Host programs that dlopen the real .so, and LD_PRELOAD objects that make system calls fail.
# Those of the agent link it, where it is built.
HOST_LIVE := test/host/otlp_send.c test/host/sampler.c test/host/http_echo.c test/host/rpc_echo.c test/host/head_load.c
HOST_SRC  := $(filter-out $(if $(LIVE_LIB),,$(HOST_LIVE)),$(sort $(wildcard test/host/*.c)))
HOST_BIN  := $(HOST_SRC:test/host/%.c=$(BUILD)/test/host/%)
PRELOAD_SRC := $(sort $(wildcard test/preload/*.c))
PRELOAD_SO  := $(PRELOAD_SRC:test/preload/%.c=$(BUILD)/test/%.so)
# A libnvidia-ml.so.1 without a GPU, and one of an older driver.
NVML_SO   := $(BUILD)/test/nvml/libnvidia-ml.so.1 $(BUILD)/test/nvml_old/libnvidia-ml.so.1
# Files that the simulator's activation mask can lie in: RCCL by its name, by its symbols, and nobody's.
MASK_SO := $(BUILD)/test/rccl/librccl.so.1 $(BUILD)/test/rccl/libframework.so $(BUILD)/test/rccl/libhidden.so
# Parts of the agent with a test's main around them.
AGENT_BIN := $(patsubst test/agent/%.c,$(BUILD)/test/agent/%,$(wildcard test/agent/*.c))
BENCH_SRC := $(sort $(wildcard test/bench/*.c))
BENCH_BIN := $(BENCH_SRC:test/bench/%.c=$(BUILD)/test/bench/%)

.PHONY: all plugin exporter sim tests tools help clean
.DEFAULT_GOAL := all
all: plugin exporter sim
plugin: $(PLUGIN_SO)
exporter: $(EXP_BIN) $(LIVE_BIN)
sim: $(SIM_BIN)
tools: $(TPLUG_SO) $(HOST_BIN) $(PRELOAD_SO) $(NVML_SO) $(MASK_SO) $(BENCH_BIN) $(AGENT_BIN)
tests: all tools $(UNIT_BIN)

$(BUILD)/obj/plugin/%.o: plugin/%.c scripts/hardening.mk
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(cflags) $(PLUGIN_CFLAGS) -c $< -o $@
$(BUILD)/obj/format/%.o: format/%.c scripts/hardening.mk
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(cflags) $(PLUGIN_CFLAGS) -c $< -o $@
$(BUILD)/obj/exporter/%.o: exporter/%.c scripts/hardening.mk
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(cflags) $(EXP_FLAGS) -c $< -o $@
$(BUILD)/obj/exporter/%.o: exporter/%.cc scripts/hardening.mk
	$(call say,CXX,$<)
	$(Q)mkdir -p $(@D) && $(CXX) $(cxxflags) $(EXP_FLAGS) $(JSON_FLAGS) -c $< -o $@
ifeq ($(HAVE_SIMDJSON),)
.PHONY: simdjson
$(EXP_OBJ): simdjson
simdjson:
	@echo 'simdjson is missing, and nccl-inspector reads logs with it: apt-get install libsimdjson-dev (the plugin alone: make plugin)' >&2; exit 1
endif
ifeq ($(HAVE_ZSTD)$(HAVE_SNAPPY),)
.PHONY: codec
$(EXP_OBJ): codec
codec:
	@echo 'zstd and snappy are missing, and nccl-inspector writes Parquet with one of them: apt-get install libzstd-dev (the plugin alone: make plugin)' >&2; exit 1
endif
$(BUILD)/obj/%.o: %.c scripts/hardening.mk
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(cflags) $(VERSION_FLAGS) -c $< -o $@

$(PLUGIN_SO): $(PLUGIN_OBJ) $(FORMAT_LIB) plugin/life/plugin.map
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(SAN) $(PLUGIN_LDFLAGS) -o $@ $(PLUGIN_OBJ) $(FORMAT_LIB) $(CODEC_A) $(PLUGIN_LIBS) $(LDFLAGS)
$(BUILD)/libplugin_test.a: $(PLUGIN_OBJ)
	$(Q)mkdir -p $(@D) && rm -f $@ && $(AR) qcs $@ $(PLUGIN_OBJ)
$(EXP_LIB): $(EXP_LIBOBJ)
	$(Q)mkdir -p $(@D) && rm -f $@ && $(AR) qcs $@ $(EXP_LIBOBJ)
$(FORMAT_LIB): $(FORMAT_OBJ)
	$(Q)mkdir -p $(@D) && rm -f $@ && $(AR) qcs $@ $(FORMAT_OBJ)
$(EXP_BIN): $(BUILD)/obj/exporter/cmds/main.o $(EXP_LIB) $(FORMAT_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(SAN) $(HARDEN_LD) -o $@ $^ $(EXP_LIBS) $(LDFLAGS)
$(BUILD)/liblive.a: $(filter-out %/head/main.o,$(LIVE_OBJ))
	$(Q)mkdir -p $(@D) && rm -f $@ && $(AR) qcs $@ $^
$(BUILD)/nccl-inspector-live: $(LIVE_OBJ) $(EXP_LIB) $(FORMAT_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(SAN) $(HARDEN_LD) -o $@ $^ $(EXP_LIBS) $(LIVE_LIBS) $(LDFLAGS)
.PHONY: mpi
mpi: $(MPI_BIN)
$(MPI_BIN): $(MPI_SRC) exporter/mpi/link.h $(EXP_LIB) $(FORMAT_LIB)
	$(call say,MPICC,$@)
	$(Q)mkdir -p $(@D) && OMPI_CC="$(CC)" MPICH_CC="$(CC)" $(MPICC) $(filter-out -MMD -MP,$(cflags)) $(HARDEN_LD) $(EXP_FLAGS) -o $@ $(MPI_SRC) \
	  $(EXP_LIB) $(FORMAT_LIB) $(EXP_LIBS) -lstdc++ $(LDFLAGS)
$(SIM_BIN): $(SIM_OBJ) $(EXP_LIB) $(FORMAT_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(SAN) $(HARDEN_LD) -Wl,--export-dynamic-symbol=ncclGetVersion -o $@ $^ $(EXP_LIBS) -ldl $(LDFLAGS)

# A unit test links both halves as archives, so it takes only what it names; those of the agent link that, too.
$(foreach s,$(UNIT_SRC),$(eval $(BUILD)/test/unit/$(basename $(notdir $(s))): $(BUILD)/obj/$(s:.c=.o)))
AGENT_UNITS := $(addprefix $(BUILD)/test/unit/,$(basename $(notdir $(filter test/unit/agent/%,$(UNIT_SRC)))))
$(AGENT_UNITS): $(LIVE_LIB)
$(AGENT_UNITS): more_libs = $(LIVE_LIBS)
$(UNIT_BIN): $(BUILD)/libplugin_test.a $(EXP_LIB) $(FORMAT_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(SAN) -o $@ $(filter %.o,$^) $(filter %/liblive.a,$^) $(filter-out %/liblive.a,$(filter %.a,$^)) -lcmocka $(more_libs) $(EXP_LIBS) $(CODEC_A) $(ZLIB_A) -ldl $(LDFLAGS)
$(BUILD)/test/%.so: test/plugins/%.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(cflags) $(SAN) -fPIC -shared -fvisibility=hidden -o $@ $< -lpthread $(LDFLAGS)
$(BUILD)/test/%.so: test/preload/%.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=c11 -D_GNU_SOURCE $(OPT) $(CWARN) -fPIC -shared -MMD -MP -o $@ $< -ldl -lpthread $(LDFLAGS)
$(BUILD)/test/nvml_old/libnvidia-ml.so.1: FAKE = -DOLD_DRIVER
$(NVML_SO): test/fake_nvml/fake_nvml.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(cflags) $(FAKE) -fPIC -shared -Wl,-soname,$(@F) -o $@ $< -lpthread $(LDFLAGS)
$(BUILD)/test/rccl/libframework.so: FAKE = -DNI_RCCL_NAMES
$(MASK_SO): test/plugins/mask.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(cflags) $(FAKE) -fPIC -shared -Wl,-soname,$(@F) -o $@ $< $(LDFLAGS)
$(HOST_LIVE:test/host/%.c=$(BUILD)/test/host/%): $(LIVE_LIB) $(EXP_LIB) $(FORMAT_LIB)
$(HOST_LIVE:test/host/%.c=$(BUILD)/test/host/%): more_libs = $(LIVE_LIBS) $(EXP_LIBS)
$(BUILD)/test/host/session_feed: $(EXP_LIB) $(FORMAT_LIB)
$(BUILD)/test/host/session_feed: more_libs = $(EXP_LIBS)
# Whoever has the exporter in it has C++ in it, also of the sanitizers' runtimes.
$(HOST_LIVE:test/host/%.c=$(BUILD)/test/host/%) $(BUILD)/test/host/session_feed: host_ld = $(CXX)
host_ld = $(CC)
# Programs that play NCCL (test/bench/plug.h) are told from other libraries by this symbol.
AS_NCCL := -Wl,--export-dynamic-symbol=ncclGetVersion
$(BUILD)/test/host/%: $(BUILD)/obj/test/host/%.o
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(host_ld) $(SAN) $(AS_NCCL) -o $@ $^ $(more_libs) -ldl -lpthread -lm $(LDFLAGS)
$(BUILD)/test/agent/%: $(BUILD)/obj/test/agent/%.o $(BUILD)/obj/exporter/agent/reader/%.o $(EXP_LIB) $(FORMAT_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(SAN) -o $@ $^ $(EXP_LIBS) $(LDFLAGS)
$(BUILD)/test/bench/sample_gpus: $(EXP_LIB)
$(BUILD)/test/bench/%: $(BUILD)/obj/test/bench/%.o
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(SAN) $(AS_NCCL) -o $@ $^ -ldl -lpthread -lm $(LDFLAGS)

include test/gpu/gpu.mk
include test/jobs/jobs.mk
include test/verdicts/fleet/fleet.mk
include test/verdicts/foreign/foreign.mk
include test/verdicts/oracle/oracle.mk
include test/gate/gate.mk
include test/fuzz/fuzz.mk
$(BUILD)/obj/exporter/head/api.o: exporter/head/openapi.json
include exporter/output/report/report.mk

clean:
	rm -rf $(BUILD)

include test/test.mk
include packaging/install.mk
include packaging/dist.mk

ALL_D := $(shell test -d $(BUILD) && find $(BUILD) -name '*.d')
-include $(ALL_D)
.SECONDARY:
