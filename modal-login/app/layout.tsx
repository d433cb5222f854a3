import type { Metadata, Viewport } from "next";
import type { ReactNode } from "react";
import "@account-kit/react/styles.css";
import "./globals.css";

export const metadata: Metadata = { title: "codezero: sign in", robots: "noindex" };
export const viewport: Viewport = {
  colorScheme: "light dark",
  themeColor: [
    { media: "(prefers-color-scheme: light)", color: "#f6f7f4" },
    { media: "(prefers-color-scheme: dark)", color: "#10140f" },
  ],
};

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  );
}
