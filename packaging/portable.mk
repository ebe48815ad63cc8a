# make PACKAGE=1: programs for the packages, which run on glibc 2.28 and newer whatever they are built on (packaging/portable.c).
# zstd, snappy, SQLite and what libstdc++ of gcc 8 has not (std::to_chars of a double) go into them. simdjson and isa-l, of which Debian has
# no archives, lie beside them in lib/nccl-inspector. zlib, libstdc++ and libgcc_s are the system's, as every system has them.
ifneq ($(PACKAGE),)
OLD_NAMES := __libc_start_main dlclose dlerror dlopen dlsym dlinfo exp hypot log log2 pow pthread_attr_setstacksize pthread_barrier_init \
  pthread_barrier_wait pthread_condattr_setclock pthread_create pthread_detach pthread_join pthread_kill pthread_mutex_trylock pthread_mutexattr_destroy pthread_mutexattr_init pthread_mutexattr_settype \
  pthread_once pthread_setname_np pthread_sigmask pthread_timedjoin_np stat lstat fstat fstatat stat64 lstat64 fstat64 gettid _ZSt28__throw_bad_array_new_lengthv
PORTABLE_OBJ := $(BUILD)/obj/packaging/portable.o $(BUILD)/obj/packaging/floating_to_chars.o
PORTABLE_LD  := $(OLD_NAMES:%=-Wl,--wrap=%) -Wl,--push-state,--no-as-needed $(OLD_LIBS) -Wl,--pop-state \
  -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/../lib/nccl-inspector'
EXP_LIBS := $(PORTABLE_LD) -lsimdjson $(if $(HAVE_ISAL),-lisal) $(if $(HAVE_ZSTD),-l:libzstd.a) $(if $(HAVE_SNAPPY),-l:libsnappy.a) $(SQLITE_LIB) -lz -lpthread -ldl -lm
$(BUILD)/obj/packaging/floating_to_chars.o:
	$(Q)mkdir -p $(@D) && cd $(@D) && $(AR) x "$$($(CXX) -print-file-name=libstdc++.a)" $(@F)
$(EXP_BIN) $(SIM_BIN) $(BUILD)/nccl-inspector-live $(BUILD)/settings_man: $(PORTABLE_OBJ)
endif
