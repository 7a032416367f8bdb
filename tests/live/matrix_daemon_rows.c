#include "matrix_rows.h"

const struct matrix_daemon matrix_daemons[] = {
	{ .name = "redis-server (jemalloc)", .is_short = true,
	  .command = "/usr/bin/redis-server --port 0 --save ~ --unixsocket @/socket --dir @",
	  .work = "redis-cli -s socket EVAL \"for i=1,500 do redis.call('SET', 'k'..i, string.rep('v', 1000)) end\" 0",
	  .undo = "redis-cli -s socket FLUSHALL" },
	{ .name = "memcached", .stacks = 50, .command = "/usr/bin/memcached -u root -s @/socket -t 2",
	  .work = "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('socket')\n"
		  "for i in range(50): s.sendall(b'set k%d 0 0 1000\\r\\n' % i + b'v' * 1000 + b'\\r\\n'); s.recv(100)\n"
		  "s.sendall(b'stats\\r\\n')\nwhile b'END' not in s.recv(9000): pass\"" },
	{ .name = "nginx", .command = "/usr/sbin/nginx -p @ -c @/conf",
	  .prepare = "echo hello >index.html && echo \"daemon off; master_process off; error_log /dev/null; pid pid;"
		     "events { worker_connections 100; } http { access_log off; client_body_temp_path b; proxy_temp_path p;"
		     "fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; server { listen unix:$PWD/socket; root $PWD; } }\""
		     " >conf",
	  .work = "for i in 1 2 3 4 5; do curl -sf --unix-socket socket http://localhost/ | grep -q hello || exit 1; done" },
	{ .name = "python3", .command = "/usr/bin/python3 -I -m http.server --directory @ --bind 127.0.0.1 18431",
	  .work = "for i in 1 2 3; do curl -sf http://127.0.0.1:18431/ >/dev/null || exit 1; done" },
	{ .name = "sshd", .command = "/usr/sbin/sshd -D -e -h @/key -p 18432 -o ListenAddress=127.0.0.1 -o PidFile=none -f /dev/null",
	  .own_folders = { "/run" }, .prepare = "mkdir -p /run/sshd && ssh-keygen -q -t ed25519 -N '' -f key",
	  .work = "ssh-keyscan -p 18432 127.0.0.1 2>/dev/null | grep -q ssh-ed25519" },
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
