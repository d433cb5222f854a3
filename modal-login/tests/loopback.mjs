// Preloaded into alto, which listens on every address of the machine and has no setting for that: on this machine alone.
import { Server } from "node:net";

const { listen } = Server.prototype;
Server.prototype.listen = function (options, ...rest) {
  return listen.call(this, typeof options === "object" ? { ...options, host: "127.0.0.1" } : options, ...rest);
};
