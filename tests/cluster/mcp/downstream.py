"""A strict MCP server over HTTP for tests. It notes the Authorization header of each call in the file NOTES, and describes its tool
with the text in the file TEXT."""

import http.server
import json
import os


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sessions = set()

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(405)

    def do_DELETE(self):
        self.sessions.discard(self.headers.get("mcp-session-id"))
        self.answer(204)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, headers = message.get("method"), [("content-type", "application/json")]
        if method == "initialize":
            session = os.urandom(8).hex()
            self.sessions.add(session)
            headers.append(("mcp-session-id", session))
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "downstream", "version": "1"},
            }
        elif self.headers.get("mcp-session-id") not in self.sessions:
            return self.answer(404)
        elif "id" not in message:
            return self.answer(202)
        elif method == "tools/list":
            with open(os.environ["TEXT"]) as file:
                text = file.read()
            schema = {"type": "object", "properties": {"text": {"type": "string"}}}
            result = {"tools": [{"name": "shout", "description": text, "inputSchema": schema}]}
        else:
            with open(os.environ["NOTES"], "a") as file:
                file.write(self.headers.get("authorization", "none") + "\n")
            text = message["params"]["arguments"].get("text", "").upper()
            result = {"content": [{"type": "text", "text": text}], "structuredContent": {"text": text}}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        self.answer(200, body, headers)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
