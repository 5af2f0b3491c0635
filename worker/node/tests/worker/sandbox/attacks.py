"""A hostile agent. Each attack runs in a child process and says whether it was stopped.

The input names what it attacks: files with secrets, another process with its sockets. An attack returns True if it
got through; an exception that is an error of the system means that it was stopped.
"""
import ctypes
import json
import os
import resource
import signal
import socket
import stat
import sys
import time

C = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
ATTACKS = {}


def attack(function):
    ATTACKS[function.__name__] = function
    return function


def call(number, *arguments):
    """A system call; an error is raised."""
    result = C.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def reads(path):
    with open(path, "rb") as file:
        return b"CANARY" in file.read(1 << 20)


def opens(path, flags=os.O_WRONLY):
    os.close(os.open(path, flags))
    return True


# Files


@attack
def read_worker_data(t):
    return reads(t["data_secret"])


@attack
def read_secrets_folder(t):
    return reads(t["secret"])


@attack
def read_hidden_file(t):
    return reads(t["hidden"])


@attack
def read_ssh_key(t):
    return reads(t["ssh_key"])


@attack
def read_shadow(t):
    with open("/etc/shadow", "rb") as file:
        return b":" in file.read()


@attack
def read_file_in_tmp(t):
    return reads(t["in_tmp"])


@attack
def read_file_elsewhere(t):
    return reads(t["elsewhere"])


@attack
def read_through_proc_root(t):
    return reads("/proc/1/root" + t["data_secret"])


@attack
def read_through_proc_cwd(t):
    return reads("/proc/self/cwd/../../../../../../../../.." + t["data_secret"])


@attack
def read_through_symlink(t):
    os.symlink(t["data_secret"], "/tmp/link")
    return reads("/tmp/link")


@attack
def hard_link(t):
    os.link(t["elsewhere"], "/tmp/hard")
    return reads("/tmp/hard")


@attack
def open_by_handle(t):
    handle = ctypes.create_string_buffer(136)
    ctypes.c_uint.from_buffer(handle).value = 128
    mount = ctypes.c_int()
    call(303 if X86 else 264, -100, ctypes.c_char_p(b"/"), handle, ctypes.byref(mount), 0)
    return True


@attack
def write_file_in_tmp(t):
    # Succeeds in the agent's own folder: the test looks at the file outside.
    with open(t["in_tmp"], "wb") as file:
        file.write(b"OVERWRITTEN")
    return False


@attack
def write_file_elsewhere(t):
    with open(t["elsewhere"] + ".new", "wb") as file:
        file.write(b"x")
    return True


@attack
def truncate_file_elsewhere(t):
    os.truncate(t["writable_elsewhere"], 0)
    return True


@attack
def rename_file_elsewhere(t):
    os.rename(t["elsewhere"], t["elsewhere"] + ".moved")
    return True


@attack
def change_mode_elsewhere(t):
    os.chmod(t["writable_elsewhere"], 0o777)
    return True


@attack
def write_system_file(t):
    with open("/etc/atlas-canary", "wb") as file:
        file.write(b"x")
    os.unlink("/etc/atlas-canary")
    return True


@attack
def write_worker_program(t):
    return opens(t["worker_program"], os.O_WRONLY | os.O_APPEND)


@attack
def write_code_of_python_agents(t):
    for root, _, files in os.walk(t["data"]):
        if "_host.py" in files:
            return opens(os.path.join(root, "_host.py"), os.O_WRONLY | os.O_APPEND)
    raise OSError("it is not visible")


@attack
def write_package(t):
    with open(os.path.join(os.getcwd(), "planted.py"), "wb") as file:
        file.write(b"x")
    return True


@attack
def fill_disk(t):
    written = 0
    with open("/tmp/fill", "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
            file.flush()
            written += 1
    return True


@attack
def fill_inodes(t):
    os.mkdir("/tmp/many")
    for number in range(8_000):
        open(f"/tmp/many/{number}", "wb").close()
    return True


@attack
def write_core_pattern(t):
    return opens("/proc/sys/kernel/core_pattern")


@attack
def write_sysrq(t):
    return opens("/proc/sysrq-trigger")


@attack
def write_sysfs(t):
    for path in ["/sys/kernel/mm/ksm/run", "/sys/kernel/profiling", "/sys/power/state", "/sys/module/kernel/parameters/panic"]:
        if os.path.exists(path):
            return opens(path)
    raise OSError("none of these files exists")


@attack
def make_cgroup(t):
    for root, folders, _ in os.walk("/sys/fs/cgroup"):
        for folder in folders:
            os.mkdir(os.path.join(root, folder, "atlas-canary"))
            os.rmdir(os.path.join(root, folder, "atlas-canary"))
            return True
    raise OSError("there are no cgroups")


@attack
def open_block_device(t):
    for name in ["vda", "sda", "nvme0n1", "loop0", "dm-0", "mem", "kmsg", "kvm", "vsock", "net/tun", "fuse"]:
        try:
            return opens("/dev/" + name, os.O_RDONLY)
        except OSError as error:
            last = error
    raise last


@attack
def make_device(t):
    os.mknod("/tmp/device", stat.S_IFBLK | 0o600, os.makedev(254, 0))
    return True


@attack
def read_kernel_memory(t):
    with open("/proc/kcore", "rb") as file:
        return len(file.read(16)) == 16


# Other processes


@attack
def find_other_process(t):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if t["marker"].encode() in file.read():
                    return True
        except OSError:
            pass
    return False


@attack
def read_environment_of_other(t):
    return reads(f"/proc/{t['victim']}/environ")


@attack
def read_environment_of_worker(t):
    return reads(f"/proc/{t['worker']}/environ")


@attack
def read_own_environment(t):
    return any("CANARY" in value for value in os.environ.values())


@attack
def read_environment_of_init(t):
    with open("/proc/1/environ", "rb") as file:
        file.read()
    return True


@attack
def write_memory_of_init(t):
    return opens("/proc/1/mem", os.O_RDWR)


@attack
def open_descriptors_of_init(t):
    for name in os.listdir("/proc/1/fd"):
        os.readlink("/proc/1/fd/" + name)
    return True


@attack
def signal_other(t):
    os.kill(t["victim"], 0)
    with open(f"/proc/{t['victim']}/cmdline", "rb") as file:
        return t["marker"].encode() in file.read()


@attack
def kill_init(t):
    os.kill(1, signal.SIGKILL)
    time.sleep(0)
    os.kill(1, 0)
    return False


@attack
def renice_other(t):
    os.setpriority(os.PRIO_PROCESS, t["victim"], 19)
    return os.getpriority(os.PRIO_PROCESS, t["victim"]) == 19


@attack
def trace_parent(t):
    call(101 if X86 else 117, 16, os.getppid(), 0, 0)
    return True


@attack
def read_memory_of_parent(t):
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    call(310 if X86 else 270, os.getppid(), vector, 1, vector, 1, 0)
    return True


@attack
def take_descriptor_of_parent(t):
    process = call(434, os.getppid(), 0)
    call(438, process, 0, 0)
    return True


@attack
def shared_memory_of_other(t):
    shmget = C.shmget
    if shmget(ctypes.c_int(t["shm_key"]), ctypes.c_size_t(0), ctypes.c_int(0)) == -1:
        raise OSError(ctypes.get_errno(), "shmget")
    return True


@attack
def fork_bomb(t):
    children = []
    try:
        for _ in range(t["forks"]):
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            children.append(child)
        return True
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)


@attack
def dump_core(t):
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    return True


# Rights


@attack
def set_user(t):
    os.setuid(1 if os.getuid() != 1 else 2)
    return True


@attack
def give_file_away(t):
    open("/tmp/mine", "wb").close()
    os.chown("/tmp/mine", 1 if os.getuid() != 1 else 2, -1)
    return True


@attack
def gain_by_setuid_program(t):
    with open("/proc/self/status") as file:
        return "NoNewPrivs:\t1" not in file.read()


@attack
def have_capabilities(t):
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(("CapEff", "CapPrm", "CapInh", "CapAmb")) and int(line.split()[1], 16):
                return True
    return False


@attack
def change_root(t):
    os.chroot("/tmp")
    return True


@attack
def new_user_namespace(t):
    call(272 if X86 else 97, 0x10000000)
    return True


@attack
def clone_with_namespace(t):
    if call(56 if X86 else 220, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os._exit(0)
    return True


@attack
def clone3(t):
    call(435, ctypes.create_string_buffer(88), 88)
    return True


@attack
def enter_namespace(t):
    namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    call(308 if X86 else 268, namespace, 0)
    return True


@attack
def mount(t):
    call(165 if X86 else 40, ctypes.c_char_p(b"t"), ctypes.c_char_p(b"/tmp"), ctypes.c_char_p(b"tmpfs"), 0, 0)
    return True


@attack
def unmount_cover(t):
    call(166 if X86 else 39, ctypes.c_char_p(b"/run"), 2)
    return True


@attack
def pivot_root(t):
    call(155 if X86 else 41, ctypes.c_char_p(b"/tmp"), ctypes.c_char_p(b"/tmp"))
    return True


@attack
def open_tree(t):
    call(428, -100, ctypes.c_char_p(b"/"), 1)
    return True


# The kernel


@attack
def bpf(t):
    call(321 if X86 else 280, 0, ctypes.create_string_buffer(72), 72)
    return True


@attack
def key_ring(t):
    call(250 if X86 else 219, 0, -3, 1)
    return True


@attack
def add_key(t):
    call(248 if X86 else 217, ctypes.c_char_p(b"user"), ctypes.c_char_p(b"a"), ctypes.c_char_p(b"b"), 1, -2)
    return True


@attack
def io_uring(t):
    call(425, 8, ctypes.create_string_buffer(120))
    return True


@attack
def userfaultfd(t):
    call(323 if X86 else 282, 1)
    return True


@attack
def perf_events(t):
    event = ctypes.create_string_buffer(128)
    ctypes.c_uint.from_buffer(event, 4).value = 128
    call(298 if X86 else 241, event, 0, -1, -1, 0)
    return True


@attack
def load_module(t):
    call(175 if X86 else 105, ctypes.create_string_buffer(8), 8, ctypes.c_char_p(b""))
    return True


@attack
def kexec(t):
    call(246 if X86 else 104, 0, 0, 0, 0)
    return True


@attack
def personality(t):
    call(135 if X86 else 92, 0x0040000)
    return True


@attack
def set_clock(t):
    time.clock_settime(time.CLOCK_REALTIME, time.time())
    return True


@attack
def set_host_name(t):
    socket.sethostname("canary")
    return True


@attack
def read_kernel_log(t):
    call(103 if X86 else 116, 3, ctypes.create_string_buffer(64), 64)
    return True


@attack
def call_of_x32(t):
    if not X86:
        raise OSError("there is no x32")
    call(0x40000000 | 39)
    return True


@attack
def type_into_terminal(t):
    terminal = os.open("/dev/tty", os.O_RDWR)
    import fcntl

    fcntl.ioctl(terminal, 0x5412, b"x")
    return True


# The network


@attack
def connect_tcp(t):
    with socket.create_connection(("127.0.0.1", t["tcp"]), timeout=5):
        return True


@attack
def send_udp(t):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(5)
        udp.connect(("127.0.0.1", t["udp"]))
        udp.send(b"ping")
        return udp.recv(16) == b"pong"


@attack
def send_udp_to_internet(t):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.sendto(b"x", ("192.0.2.1", 53))
        return True


@attack
def connect_metadata_service(t):
    with socket.socket() as tcp:
        tcp.settimeout(0.2)
        try:
            tcp.connect(("169.254.169.254", 80))
        except TimeoutError:
            pass
        return True


@attack
def raw_socket(t):
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return True


@attack
def packet_socket(t):
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    return True


@attack
def vsock(t):
    socket.socket(40, socket.SOCK_STREAM).close()
    return True


@attack
def kernel_crypto_socket(t):
    socket.socket(38, socket.SOCK_SEQPACKET).close()
    return True


@attack
def connect_abstract_socket(t):
    with socket.socket(socket.AF_UNIX) as unix:
        unix.connect("\0" + t["abstract"])
        return True


@attack
def connect_socket_in_tmp(t):
    with socket.socket(socket.AF_UNIX) as unix:
        unix.connect(t["unix_in_tmp"])
        return True


@attack
def connect_socket_elsewhere(t):
    with socket.socket(socket.AF_UNIX) as unix:
        unix.connect(t["unix_elsewhere"])
        return True


@attack
def connect_container_engine(t):
    last = OSError("no engine")
    for path in ["/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock"]:
        try:
            with socket.socket(socket.AF_UNIX) as unix:
                unix.connect(path)
                return True
        except OSError as error:
            last = error
    raise last


def run(function, target):
    """Runs an attack in a child: "stopped", with the reason, or "escaped"."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            verdict = "escaped" if function(target) else "stopped"
        except (OSError, ValueError, MemoryError) as error:
            verdict = f"stopped: {error}"
        except BaseException as error:
            verdict = f"broken: {error!r}"
        os.write(writer, verdict.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        verdict = answer.read().decode()
    os.waitpid(child, 0)
    return verdict or "stopped: killed"


if __name__ == "__main__":
    target = json.load(sys.stdin)["input"]
    # A process that leaves the session and its parent: the test looks for it afterwards.
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open("/dev/null", os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            os.execvp("sleep", ["sleep", target["left"]])
        os._exit(0)
    os.wait()
    print(json.dumps({name: run(function, target) for name, function in ATTACKS.items()}))
