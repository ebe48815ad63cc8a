# The tools of scripts/gpu_validate.sh: built everywhere, they need no GPU and no header of NVIDIA's to build.
#   gpu_drive         real collectives through the NCCL C API, with a truth file
#   gpu_check         that truth against the plugin's logs
#   gpu_contract      a recording of callbacks against what is known of NCCL
#   force_vN.so       a profiler that has one interface version only, and passes all calls to NI_FORCE_PLUGIN
#   fake/             an NCCL and a CUDA driver without a GPU, to test the above
#   no_device/        fake/no_device.so, which lets a real NCCL run without a GPU
GPU_OUT := $(BUILD)/test/gpu
GPU_O   := $(BUILD)/obj/test/gpu
SIM_O   := $(BUILD)/obj/test/nccl_sim
GPU_FORCE := $(foreach v,1 2 3 4 5 6 7,$(BUILD)/test/force_v$(v).so)
GPU_FAKE  := $(GPU_OUT)/fake/libnccl.so.2 $(GPU_OUT)/fake/libcuda.so.1 $(if $(filter x86_64-%,$(MACHINE)),$(GPU_OUT)/fake/no_device.so)
GPU_BINS  := $(GPU_OUT)/gpu_drive $(GPU_OUT)/gpu_check $(GPU_OUT)/gpu_contract
.PHONY: gpu-tools gpu-portable
gpu-tools: $(GPU_BINS) $(GPU_FORCE) $(GPU_FAKE)
tools: gpu-tools

$(GPU_OUT)/gpu_drive: $(addprefix $(GPU_O)/,drive.o rank.o plans.o plans_v7.o plan_cost.o gpu_api.o)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(SAN) -o $@ $^ -ldl $(LDFLAGS)
$(GPU_OUT)/gpu_check: $(addprefix $(GPU_O)/,check.o check_times.o truth_read.o say.o) $(SIM_O)/verify/log_source.o $(EXP_LIB) $(FORMAT_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(SAN) -o $@ $^ $(EXP_LIBS) $(LDFLAGS)
$(GPU_OUT)/gpu_contract: $(addprefix $(GPU_O)/,contract.o say.o) $(SIM_O)/replay/recording.o $(SIM_O)/replay/recording_json.o
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(SAN) -o $@ $^ -lm $(LDFLAGS)
$(GPU_OUT)/fake/libcuda.so.1: test/gpu/fake/fake_cuda.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(cflags) $(SAN) -fPIC -shared -fvisibility=hidden -o $@ $< $(LDFLAGS)
# The parameters of functions nobody reads are written for their names' sake; libcudart's functions have other types.
$(GPU_OUT)/fake/no_device.so: $(wildcard test/gpu/no_device/*.c) test/gpu/no_device/no_device.h
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(filter-out -MMD -MP,$(cflags)) $(SAN) -Wno-cast-function-type -fPIC -shared -fvisibility=hidden -o $@ $(filter %.c,$^) -ldl -lpthread $(LDFLAGS)
# -Bsymbolic: the loader's names are those of nccl-sim's own, and a test may have both in one process.
$(GPU_OUT)/fake/libnccl.so.2: test/gpu/fake/fake_nccl.c test/gpu/fake/fake_proxy.c test/nccl_sim/core/loader.c test/nccl_sim/core/shim.c $(wildcard test/nccl_sim/core/*.h test/gpu/fake/*.h)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(filter-out -MMD -MP,$(cflags)) $(SAN) -fPIC -shared -fvisibility=hidden -Wl,-Bsymbolic -o $@ $(filter %.c,$^) -ldl -lpthread $(LDFLAGS)
$(BUILD)/test/force_v%.so: test/gpu/force_version.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(filter-out -MMD -MP,$(cflags)) $(SAN) -DNI_FORCE_VERSION=$* -fPIC -shared -fvisibility=hidden -o $@ $< -ldl $(LDFLAGS)

# Everything that a machine with a GPU needs, for one that lacks compilers or libraries: copy build-gpu/ (without obj/) there.
# What is not glibc's goes along in build-gpu/lib. nccl-inspector-live, which validates nothing, is left out.
ifdef PORTABLE
LDFLAGS += -s -Wl,-rpath,'$$ORIGIN/lib:$$ORIGIN/../lib:$$ORIGIN/../../lib'
EXP_LIBS := $(patsubst -lz,-l:libz.a,$(EXP_LIBS))
endif
PORTABLE_BUILD ?= build-gpu
gpu-portable:
	$(Q)$(MAKE) PORTABLE=1 BUILD=$(PORTABLE_BUILD) OPT=-O2 HAVE_ISAL= HAVE_ZSTD=1 HAVE_SNAPPY= HAVE_MICROHTTPD= \
	  plugin exporter sim gpu-tools $(PORTABLE_BUILD)/test/recorder.so $(PORTABLE_BUILD)/test/noop.so
	$(Q)rm -rf $(PORTABLE_BUILD)/lib && mkdir -p $(PORTABLE_BUILD)/lib && ldd $(PORTABLE_BUILD)/nccl-inspector | awk '/=> \// {print $$3}' | \
	  grep -vE '/(libc|libm|libpthread|libdl|ld-linux[^/]*)\.so' | xargs -I{} cp -L {} $(PORTABLE_BUILD)/lib/
	@echo "$(PORTABLE_BUILD)/: $$(du -sh --exclude=obj $(PORTABLE_BUILD) | cut -f1) to copy; scripts/gpu_validate.sh finds it"
