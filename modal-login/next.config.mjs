/** @type {import("next").NextConfig} */
export default {
  // A folder that runs without node_modules: what start.mjs runs, and all that a container needs.
  output: "standalone",
  outputFileTracingRoot: import.meta.dirname,
  outputFileTracingExcludes: { "*": ["temp-data/**", "sign-in.env", "tests/**", "screenshots/**", "*.md", "*.sh"] },
  turbopack: { root: import.meta.dirname },
  poweredByHeader: false,
  reactStrictMode: true,
};
