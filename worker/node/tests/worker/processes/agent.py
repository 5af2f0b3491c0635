"""An agent that does with processes, threads and signals what scripts do. Its input names one use, and the start method."""

import asyncio
import atexit
import logging
import multiprocessing
import multiprocessing.pool
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import shared_memory

import helper
from atlas.runtime.base import AgentBase

SAYS = "import logging; logging.warning('of a script'); print('printed by a script')"


def square(n):
    logging.getLogger("child").warning("squares %d", n)
    logging.getLogger("child").info("quietly")
    print("printed", n, flush=True)
    return n * n


def nested(context, n):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(context)) as pool:
        return sum(pool.map(square, range(n)))


def into(queue, event, name):
    event.wait(60)
    block = shared_memory.SharedMemory(name)
    queue.put(bytes(block.buf[:2]))
    block.close()


def leaves(code):
    sys.exit(code)


def fails():
    raise ValueError("of a child")


def report(agent, pipe):
    try:
        agent.context.progress("of a child")
        pipe.send("no error")
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")


def held():
    """The descriptors of this process, apart from the standard ones and that of the listing."""
    links = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}
    return sorted(link for fd, link in links.items() if int(fd) > 2 and link.startswith("pipe:"))


class Processes(AgentBase):
    async def on_startup(self):
        self.executors = {}
        self.executor = None
        self.n = 7
        atexit.register(print, "at exit", flush=True)
        # The first pipes of the process are those to the worker, if no other ones are inherited.
        self.protocol = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.environ.get("PROTOCOL_FDS", "").split()]

    async def execute(self, input_data):
        self.method = input_data["method"]
        self.processes = multiprocessing.get_context(self.method)
        return {"value": await getattr(self, input_data["use"])()}

    def times(self, n):
        return self.n * n

    async def pool(self):
        with self.processes.Pool(2) as pool:
            return pool.map(square, range(4))

    async def pool_of_method(self):
        with self.processes.Pool(2) as pool:
            return pool.map(self.times, range(3))

    async def pool_of_helper(self):
        with self.processes.Pool(1) as pool:
            return pool.map(helper.double, [4])

    async def executor_in_loop(self):
        loop = asyncio.get_running_loop()
        with ProcessPoolExecutor(2, mp_context=self.processes) as pool:
            return await asyncio.gather(*(loop.run_in_executor(pool, square, n) for n in range(3)))

    async def executor_kept(self):
        self.executor = self.executor or ProcessPoolExecutor(1, mp_context=self.processes)
        return [self.executor.submit(os.getpid).result() == self.executor.submit(os.getpid).result(), self.executor.submit(square, 3).result()]

    async def nested_pools(self):
        with ProcessPoolExecutor(1, mp_context=self.processes) as pool:
            return pool.submit(nested, self.method, 3).result()

    async def process_with_queue(self):
        queue, event = self.processes.Queue(), self.processes.Event()
        block = shared_memory.SharedMemory(create=True, size=8)
        try:
            block.buf[:2] = b"ok"
            process = self.processes.Process(target=into, args=(queue, event, block.name))
            process.start()
            event.set()
            got = queue.get(timeout=60).decode()
            process.join()
            return [got, process.exitcode]
        finally:
            block.close()
            block.unlink()

    async def manager(self):
        with self.processes.Manager() as manager:
            values = manager.list([1])
            values.append(2)
            return list(values)

    async def exits_of_children(self):
        children = [self.processes.Process(target=leaves, args=(3,)), self.processes.Process(target=fails)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        return [child.exitcode for child in children]

    async def daemon(self):
        process = self.processes.Process(target=time.sleep, args=(3_600,), daemon=True)
        process.start()
        alive = process.is_alive()
        process.terminate()
        process.join()
        return [alive, process.exitcode]

    async def call_of_child(self):
        ours, theirs = self.processes.Pipe()
        process = self.processes.Process(target=report, args=(self, theirs))
        process.start()
        said = ours.recv()
        process.join()
        return said

    async def descriptors_of_child(self):
        with self.processes.Pool(1) as pool:
            return [pipe for pipe in pool.apply(held) if pipe in self.protocol]

    async def threads(self):
        loop = asyncio.get_running_loop()

        def inside():
            logging.warning("of a thread")
            self.context.progress("of a thread")
            return asyncio.run_coroutine_threadsafe(asyncio.sleep(0, "from the loop"), loop).result()

        said = []
        thread = threading.Thread(target=lambda: (said.append("raised"), sys.exit(3)))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(2) as pool:
            said.append(await loop.run_in_executor(pool, inside))
        with multiprocessing.pool.ThreadPool(2) as pool:
            said.append(pool.map(self.times, [1]))
        said.append(await asyncio.to_thread(lambda: asyncio.run(asyncio.sleep(0, "own loop"))))
        return said

    async def thread_left(self):
        threading.Thread(target=threading.Event().wait).start()
        return "left"

    async def subprocesses(self):
        done = subprocess.run([sys.executable, "-c", SAYS], capture_output=True, text=True)
        process = await asyncio.create_subprocess_exec("cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        said, _ = await process.communicate(b"through a pipe")
        shell = await asyncio.create_subprocess_shell("exit 4")
        return [done.stdout, done.stderr, said.decode(), await shell.wait(), os.system("exit 5") >> 8]

    async def descriptors_of_program(self):
        list_them = "for fd in /proc/self/fd/*; do readlink $fd; done"
        done = subprocess.run(["sh", "-c", list_them], capture_output=True, text=True, close_fds=False)
        return [line for line in done.stdout.split() if line in self.protocol]

    async def signals(self):
        said = []
        before = signal.signal(signal.SIGUSR1, lambda number, _frame: said.append(number))
        os.kill(os.getpid(), signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, before)
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGUSR2, event.set)
        os.kill(os.getpid(), signal.SIGUSR2)
        await event.wait()
        loop.remove_signal_handler(signal.SIGUSR2)

        def late(_number, _frame):
            raise TimeoutError("too late")

        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        try:
            time.sleep(60)
        except TimeoutError as error:
            said.append(str(error))
        blocked = sorted(int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, []))
        return [said, blocked, signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN]

    async def forks(self):
        codes = []
        for end in (lambda: os._exit(2), lambda: sys.exit(3), lambda: sys.exit("in words"), fails):
            child = os.fork()
            if child == 0:
                logging.warning("of a fork")
                end()
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return codes

    async def fork_that_calls(self):
        child = os.fork()
        if child == 0:
            self.context.progress("of a fork")
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    async def fork_that_returns(self):
        child = os.fork()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child else "of the child"

    async def detached(self):
        if (child := os.fork()) == 0:
            os.setsid()
            if os.fork() == 0:
                logging.warning("of a daemon")
                os._exit(0)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    async def exit(self):
        sys.exit(3)

    async def exit_in_task(self):
        async def leave():
            sys.exit(4)

        task = asyncio.create_task(leave())
        await asyncio.sleep(60)
        return str(task)

    async def alarm_in_loop(self):
        def late(_number, _frame):
            raise TimeoutError("too late")

        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        await asyncio.sleep(60)

    async def closed_outputs(self):
        os.close(1)
        sys.stderr.close()
        logging.warning("still there")
        with self.processes.Pool(1) as pool:
            return pool.map(len, ["ab"])
