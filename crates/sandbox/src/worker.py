# The Python worker: reads one request per line from standard input, writes one response per line to standard output.
# Each script runs in a separate fork, so that it leaves no state for the next one.
import ast, builtins, gc, io, json, os, re, signal, sys

NAME = "<script>"
GLOBALS = ("state", "output", "reflection_output", "reflection_errors",
           "reflection_iteration", "json", "re")
# A script may modify the modules; the response is written with the original functions.
dumps, loads = json.dumps, json.loads


class TimeLimit(BaseException):
    pass


class Prints(io.TextIOBase):
    """Collects printed text, up to the limit."""

    def __init__(self, limit):
        self.parts, self.room, self.flooded = [], limit, False

    def writable(self):
        return True

    def write(self, text):
        self.room -= len(text.encode("utf-8", "replace"))
        if self.room < 0:
            self.flooded = True
            raise OSError("too much output")
        self.parts.append(text)
        return len(text)


class Fallthrough:
    """The local names of a script whose top-level return was not reached."""

    def __init__(self, names):
        self.names = names


def returns_at_top(body):
    """Whether a statement outside of functions is a return."""
    stack = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Return):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack.extend(n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.expr))
    return False


def parse(code):
    try:
        return ast.parse(code, NAME)
    except IndentationError:
        # A block from a YAML or TOML file may be indented as a whole.
        import textwrap
        return ast.parse(textwrap.dedent(code), NAME)


def run(code, names):
    """Returns the value of the script: what it returns, else `result`, else a reassigned `output`."""
    tree = parse(code)
    draft = names["output"]
    if returns_at_top(tree.body):
        # Move the code into a function and keep its line numbers. The globals become parameters,
        # so that the script can assign to them.
        wrapper = ast.parse("def script(%s): pass\n" % ", ".join(GLOBALS), NAME)
        function = wrapper.body[0]
        end = ast.parse("return Fallthrough(locals())", NAME).body
        last = getattr(tree.body[-1], "end_lineno", 1)
        for node in ast.walk(end[0]):
            if hasattr(node, "lineno"):
                node.lineno = node.end_lineno = last
        end[0].value.func.id = "__fallthrough__"
        function.body = tree.body + end
        space = dict(names, __name__="__main__", __fallthrough__=Fallthrough)
        exec(compile(wrapper, NAME, "exec"), space)
        value = space["script"](*(names[name] for name in GLOBALS))
        if not isinstance(value, Fallthrough):
            return value
        names = value.names
    else:
        names["__name__"] = "__main__"
        exec(compile(tree, NAME, "exec"), names)
    if "result" in names:
        return names["result"]
    if names.get("output") is not draft:
        return names.get("output")
    return None


def plain(value):
    """Converts values that JSON can represent in another form."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    raise TypeError("it returned a value of type %s, which JSON cannot represent" % type(value).__name__)


def line_of(error):
    """Returns the innermost line of the script itself."""
    if isinstance(error, SyntaxError) and error.filename == NAME:
        return error.lineno
    line, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == NAME:
            line = step.tb_lineno
        step = step.tb_next
    return line


def failed(kind, message, prints, line=None):
    return {"error": {"kind": kind, "message": message, "line": line},
            "prints": "".join(prints.parts)}


def explain(error, limits, prints):
    line = line_of(error)
    if isinstance(error, TimeLimit):
        return failed("time", "it ran longer than the time limit of %gs" % limits["seconds"], prints, line)
    if isinstance(error, MemoryError):
        return failed("memory", "it exceeded the memory limit", prints, line)
    if isinstance(error, SyntaxError) and (error.filename == NAME):
        return failed("syntax", "%s: %s" % (type(error).__name__, error.msg), prints, line)
    if isinstance(error, SystemExit):
        return failed("runtime", "it called sys.exit(%r) instead of returning a value" % (error.code,), prints, line)
    try:
        text = str(error)
    except BaseException:
        text = "(unreadable message)"
    return failed("runtime", "%s: %s" % (type(error).__name__, text) if text else type(error).__name__,
                  prints, line)


def limit(limits):
    """Sets the limits of this evaluation, which are at most those of the worker."""
    try:
        import resource
    except ImportError:
        return
    seconds = int(limits["seconds"]) + 2
    for name, value in (("RLIMIT_DATA", limits["memory"]), ("RLIMIT_CPU", seconds * (os.cpu_count() or 1))):
        try:
            which = getattr(resource, name)
            hard = resource.getrlimit(which)[1]
            if hard != resource.RLIM_INFINITY:
                value = min(value, hard)
            resource.setrlimit(which, (value, hard))
        except (ValueError, OSError, AttributeError):
            pass


def evaluate(line):
    """Returns the response to a request, as a line of JSON."""
    asked = loads(line)
    request, limits = asked["request"], asked["limits"]
    prints = Prints(limits["output"])
    state = request["state"]
    names = {
        "state": state,
        "output": request["output"],
        "reflection_output": state.get("reflection_output", request["output"]),
        "reflection_errors": state.get("reflection_errors", []),
        "reflection_iteration": state.get("reflection_iteration", 0),
        "json": json,
        "re": re,
    }

    if request.get("bare_names"):
        for key, value in state.items():
            if key.isidentifier() and not hasattr(builtins, key):
                names.setdefault(key, value)

    def late(number, frame):
        raise TimeLimit()

    try:
        limit(limits)
        sys.stdout = sys.stderr = prints
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, late)
            # Repeatedly, for a script that catches every exception.
            signal.setitimer(signal.ITIMER_REAL, limits["seconds"], 0.05)
        try:
            value = run(request["code"], names)
        finally:
            if hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException as error:
        answer = explain(error, limits, prints)
    else:
        names.clear()
        try:
            text = dumps(value, allow_nan=False, default=plain, ensure_ascii=False)
            if len(text) > limits["output"]:
                answer = failed("output", "it returned more than %d bytes" % limits["output"], prints)
            else:
                # Do not dump the value again: it may be large, or change.
                shown = dumps("".join(prints.parts), ensure_ascii=False)
                answer = None
        except (TypeError, ValueError, RecursionError) as error:
            message = str(error)
            if "Out of range float" in message:
                message = "it returned a number that is infinite or not a number, which JSON cannot represent"
            elif "Circular" in message or isinstance(error, RecursionError):
                message = "it returned a value that is nested too deeply or contains itself"
            answer = failed("protocol", message, prints)
        except MemoryError:
            answer = failed("memory", "its value exceeds the memory limit", prints)
    if prints.flooded:
        answer = failed("output", "it printed more than %d bytes" % limits["output"], prints)
    if answer is None:
        text = '{"value": %s, "prints": %s}' % (text, shown)
    else:
        text = dumps(answer, ensure_ascii=False)
    return text.encode("utf-8", "replace").replace(b"\n", b" ") + b"\n"


def send(out, data):
    while data:
        data = data[os.write(out, data):]


def forked(line, out):
    """Evaluates in a child process, then kills everything that the child started."""
    ours, theirs = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        os.close(ours)
        os.close(theirs)
        message = "cannot create a process for it: %s" % error
        return dumps({"error": {"kind": "runtime", "message": message}}).encode() + b"\n"
    if pid == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            os.close(ours)
            os.close(out)
            send(theirs, evaluate(line))
            code = 0
        except MemoryError:
            code = 3
        finally:
            os._exit(code)
    os.close(theirs)
    try:
        os.setpgid(pid, pid)
    except OSError:
        pass  # The child has done so itself.
    send(out, b'{"pid": %d}\n' % pid)
    parts = []
    # Do not wait for the end of the pipe: a background process may keep it open.
    while not (parts and parts[-1].endswith(b"\n")):
        part = os.read(ours, 1 << 16)
        if not part:
            break
        parts.append(part)
    os.close(ours)
    answer = b"".join(parts)
    if answer.endswith(b"\n"):
        kill_group(pid)
        os.waitpid(pid, 0)
        return answer
    status = os.waitpid(pid, 0)[1]
    kill_group(pid)
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == getattr(signal, "SIGXCPU", -1):
        error = {"kind": "time", "message": "it used more CPU time than the time limit allows"}
    elif number:
        error = {"kind": "runtime", "message": "the interpreter was killed by signal %d" % number}
    elif os.WEXITSTATUS(status) == 3:
        error = {"kind": "memory", "message": "its input exceeds the memory limit"}
    else:
        error = {"kind": "runtime", "message": "it exited the interpreter instead of returning a value"}
    return dumps({"error": error}).encode() + b"\n"


def kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def serve():
    # Hide the protocol from the script: its own standard streams lead elsewhere.
    requests, out = os.fdopen(os.dup(0), "rb"), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    gc.freeze()
    send(out, b'{"ready": true}\n')
    for line in iter(requests.readline, b""):
        send(out, forked(line, out) if hasattr(os, "fork") else evaluate(line))


serve()
