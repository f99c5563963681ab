"""What the gate allows: modules with their names, and limits. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

EVERY = "*"
"""Every public name of a module; `-name` after it takes one out again."""

MODULES: Mapping[str, tuple[str, ...]] = {
    # What the sandbox offers.
    "src.agent.*": (EVERY,),
    "src.agent.agent_interface": (EVERY, "_TOOL_REGISTRY"),
    "src.agent.proxy_client": ("ProxyClient", "DEFAULT_PROXY_URL"),
    "arena_client": (
        *("ArenaClient", "GatewayError", "Message"),
        *("ProductDetails", "ProductHit", "ProductSpec", "RETRIED"),
    ),
    "requests": (
        *("get", "post", "put", "patch", "delete", "head", "options", "request"),
        *("Session", "session", "Request", "PreparedRequest", "Response"),
        *("RequestException", "HTTPError", "ConnectionError", "Timeout", "ConnectTimeout"),
        *("ReadTimeout", "TooManyRedirects", "URLRequired", "JSONDecodeError", "codes"),
    ),
    "requests.exceptions": (EVERY,),
    "requests.adapters": ("HTTPAdapter", "Retry"),
    "requests.sessions": ("Session",),
    "urllib3.util.retry": ("Retry",),
    "urllib3.util": ("Retry", "Timeout"),
    # The standard library, as far as an agent needs it.
    "__future__": (EVERY,),
    "abc": (EVERY,),
    "ast": ("literal_eval",),
    "asyncio": (
        *("run", "gather", "sleep", "to_thread", "wait", "wait_for", "as_completed", "timeout"),
        *("create_task", "ensure_future", "shield", "Task", "Future", "TaskGroup", "Runner"),
        *("get_event_loop", "get_running_loop", "new_event_loop", "set_event_loop"),
        *("Semaphore", "BoundedSemaphore", "Lock", "Event", "Condition", "Queue", "QueueEmpty"),
        *("PriorityQueue", "TimeoutError", "CancelledError", "InvalidStateError"),
        *("FIRST_COMPLETED", "ALL_COMPLETED", "FIRST_EXCEPTION", "iscoroutinefunction"),
    ),
    "bisect": (EVERY,),
    "cmath": (EVERY,),
    "collections": (EVERY,),
    "collections.abc": (EVERY,),
    "concurrent.futures": (EVERY,),
    "concurrent.futures.thread": ("ThreadPoolExecutor",),
    "contextlib": (EVERY,),
    "contextvars": (EVERY,),
    "copy": (EVERY,),
    "dataclasses": (EVERY, "-make_dataclass"),
    "datetime": (EVERY,),
    "decimal": (EVERY,),
    "difflib": (EVERY,),
    "enum": (EVERY,),
    "fractions": (EVERY,),
    "functools": (EVERY,),
    "graphlib": (EVERY,),
    "hashlib": (EVERY, "-file_digest"),
    "heapq": (EVERY,),
    "html": (EVERY,),
    "inspect": ("signature", "Parameter", "Signature", "cleandoc", "getdoc", "isfunction"),
    "io": ("StringIO", "BytesIO"),
    "itertools": (EVERY,),
    "json": (EVERY,),
    "json.decoder": ("JSONDecodeError", "JSONDecoder"),
    "json.encoder": ("JSONEncoder",),
    "keyword": (EVERY,),
    "logging": (EVERY, "-FileHandler"),
    "math": (EVERY,),
    "multiprocessing": (
        *("Pool", "Process", "Queue", "Lock", "Event", "Value", "Array", "Pipe", "Semaphore"),
        *("cpu_count", "current_process", "get_context", "TimeoutError"),
    ),
    "multiprocessing.dummy": ("Pool",),
    "multiprocessing.pool": ("ThreadPool", "Pool"),
    "numbers": (EVERY,),
    "operator": (EVERY,),
    "os": ("getenv", "cpu_count", "linesep", "sep"),
    "os.path": (EVERY,),
    "pprint": (EVERY,),
    "queue": (EVERY,),
    "random": (EVERY,),
    "re": (EVERY,),
    "secrets": (EVERY,),
    "statistics": (EVERY,),
    "string": (EVERY, "-Formatter"),
    "sys": (
        *("modules", "stdout", "stderr", "exit", "version", "version_info", "maxsize"),
        *("float_info", "getsizeof", "platform", "byteorder", "exc_info", "intern"),
        *("getrecursionlimit", "setrecursionlimit"),
    ),
    "textwrap": (EVERY,),
    "threading": (EVERY, "-settrace", "-setprofile", "-settrace_all_threads"),
    "time": (EVERY,),
    "traceback": ("format_exc", "print_exc", "format_exception", "format_exception_only"),
    "types": ("SimpleNamespace", "MappingProxyType", "NoneType", "TracebackType"),
    "typing": (EVERY, "-get_type_hints", "-ForwardRef"),
    "typing_extensions": (EVERY, "-get_type_hints", "-ForwardRef"),
    "unicodedata": (EVERY,),
    "urllib.parse": (EVERY,),
    "uuid": (EVERY,),
    "warnings": ("warn", "filterwarnings", "simplefilter", "catch_warnings"),
    "zoneinfo": ("ZoneInfo",),
}
"""Module → the names of it that may be used. After the upstream gate, which bans os (but
os.path, os.getenv), subprocess, socket, http, urllib (but urllib.parse), ctypes, cffi,
pickle, shutil, base64, binascii, codecs and zlib; here what is not named is not allowed.
Names that run text, open files or hand out frames are left out of each."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one arena. The same policy and file give the same verdict."""

    python: tuple[int, int] = (3, 11)
    """Language version of the sandbox: newer syntax is refused."""
    modules: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MODULES)
    read_files: bool = True
    """Whether files may be opened for reading; for writing they never may."""

    max_bytes: int = 512 << 10
    max_name_chars: int = 100
    max_nodes: int = 80_000
    """Nodes of the syntax tree: bounds the time that reading takes."""
    max_depth: int = 250
    """Depth of the syntax tree."""

    max_table_items: int = 400
    """Short constants in one literal, one chain of branches or one run of assignments."""
    max_tables_items: int = 2_500
    """The same, over the whole file."""
    max_table_chars: int = 16_000
    """Characters of the short strings in one literal."""
    max_id_like: int = 8
    """Distinct numbers that could be product ids, in the whole file."""
    max_number_bits: int = 100
    """Of an integer literal."""
    max_blob_chars: int = 80
    """Of one run of text that reads as encoded data."""
    max_blobs_chars: int = 400
    """The same, over the whole file."""
    max_invisible: int = 6
    """Characters in a row that no eye sees."""

    copy_share: float = 0.4
    """Share of one's own code found in the other's file from which it is a copy."""
    copy_min: int = 30
    """Fingerprints of code that must be shared, below which nothing can be told."""
    text_share: float = 0.5
    """Share of one's own prose (prompts) found in the other's."""
    text_min: int = 40
    """Word triples of prose that must be shared."""
    public_bases: tuple[str, ...] = ("react", "pipeline")
    """Shipped agents, or files, that anyone may build on. The agent kit always is one."""
