#include "matrix_rows.h"

#include <signal.h>

#define POSTGRES "/usr/lib/postgresql/15/bin/"
#define POSTGRES_WORK "echo \"select count(distinct repeat(n::text, 20)), 'done' from generate_series(1, 2000) n;\" "

const struct matrix_daemon matrix_daemons[] = {
	{ .name = "redis-server (jemalloc)", .is_short = true,
	  .command = "/usr/bin/redis-server --port 0 --save ~ --unixsocket @/socket --dir @",
	  .work = "redis-cli -s socket EVAL \"for i=1,150 do redis.call('SET', 'k'..i, string.rep('v', 3000)) end\" 0",
	  .undo = "redis-cli -s socket FLUSHALL" },
	{ .name = "memcached", .stacks = 50, .command = "/usr/bin/memcached -u root -s @/socket -t 2",
	  .work = "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('socket')\n"
		  "for i in range(50): s.sendall(b'set k%d 0 0 1000\\r\\n' % i + b'v' * 1000 + b'\\r\\n'); s.recv(100)\n"
		  "for i in range(80):\n s.sendall(b'stats' + [b'', b' slabs', b' items', b' settings'][i % 4] + b'\\r\\n')\n"
		  " while b'END' not in s.recv(9000): pass\"" },
	{ .name = "nginx", .command = "/usr/sbin/nginx -p @ -c @/conf",
	  .prepare = "echo hello >index.html && echo \"daemon off; master_process off; error_log /dev/null; pid pid;"
		     "events { worker_connections 100; } http { access_log off; client_body_temp_path b; proxy_temp_path p;"
		     "fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; server { listen unix:$PWD/socket; root $PWD; } }\""
		     " >conf",
	  .work = "for i in $(seq 20); do curl -sf --unix-socket socket http://localhost/ | grep -q hello || exit 1; done" },
	{ .name = "python3", .command = "/usr/bin/python3 -I -m http.server --directory @ --bind 127.0.0.1 18431",
	  .work = "for i in 1 2 3; do curl -sf http://127.0.0.1:18431/ >/dev/null || exit 1; done" },
	{ .name = "sshd", .command = "/usr/sbin/sshd -D -e -h @/key -p 18432 -o ListenAddress=127.0.0.1 -o PidFile=none -f /dev/null",
	  .own_folders = { "/run" }, .prepare = "mkdir -p /run/sshd && ssh-keygen -q -t ed25519 -N '' -f key",
	  .serves = "bash -c '</dev/tcp/127.0.0.1/18432' 2>/dev/null",
	  .work = "ssh-keyscan -p 18432 127.0.0.1 2>/dev/null | grep -q ssh-ed25519" },
	{ .name = "postgres, its backends", .user = "postgres", .command = POSTGRES "postgres -D @/data -k @/data -h ~",
	  .alone = POSTGRES "postgres --single -D @/data postgres",
	  .prepare = "mkdir data && chown postgres data && setpriv --reuid=postgres --regid=postgres --clear-groups "
		     POSTGRES "initdb -D data -A trust >/dev/null && " POSTGRES_WORK ">input",
	  /* three connections that stay */
	  .work = POSTGRES "pg_isready -qh $PWD/data -U postgres || exit 1; for i in 1 2 3; do [ -p q$i ] || { mkfifo q$i a$i; "
		  "psql -h $PWD/data -U postgres -qAtX <>q$i 1<>a$i 2>&1 & }; " POSTGRES_WORK ">q$i; "
		  "timeout 20 grep -q done <a$i || exit 1; done",
	  .processes = "pgrep -P $(head -1 data/postmaster.pid) -f 'postgres: postgres'",
	  .end_signal = SIGINT, .tidy = "rm -f q? a?" },
	{ .name = "systemd-journald", .command = "/lib/systemd/systemd-journald matrix", .own_folders = { "/run", "/var/log" },
	  .no_live = "what it knows of a client is kept", .connected = "/run/systemd/journal.matrix/stdout", /* after 30 s */
	  .prepare = "mkdir -p /run/systemd/journal.matrix /run/log/journal",
	  .work = "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
		  "s.connect('/run/systemd/journal.matrix/socket')\n"
		  "for i in range(50): s.send(b'MESSAGE=hello %d' % i)\" 2>/dev/null && journalctl --namespace=matrix --sync" },
	{ .name = "Node", .command = "/usr/bin/node --always-sparkplug -e require('http').createServer((q,s)=>s.end(Buffer.alloc(70000))).listen('@/socket')",
	  .generated = true, .no_live = "its collector decides",
	  .work = "for i in 1 2 3; do curl -sf --unix-socket socket http://localhost/ >/dev/null || exit 1; done" },
	{ .name = "JVM", .command = "/usr/bin/java -Xmx64m -cp @ Server", .generated = true,
	  .no_live = "its collector decides",
	  .prepare = "printf 'import com.sun.net.httpserver.*; import java.net.*; import java.util.zip.*; public class Server {"
		     "public static void main(String[] a) throws Exception { HttpServer s = HttpServer.create("
		     "new InetSocketAddress(\"127.0.0.1\", 18433), 0); s.createContext(\"/\", e -> { Deflater d = new Deflater();"
		     "d.setInput(new byte[9000]); d.finish(); byte[] b = new byte[9000]; int n = d.deflate(b); d.end();"
		     "e.sendResponseHeaders(200, n); e.getResponseBody().write(b, 0, n); e.close(); }); s.start(); } }'"
		     " >Server.java && javac Server.java",
	  .work = "for i in 1 2 3; do curl -sf http://127.0.0.1:18433/ >/dev/null || exit 1; done" },
};
const size_t matrix_daemon_count = sizeof(matrix_daemons) / sizeof(matrix_daemons[0]);
