import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// The page asks its own origin; the development server hands /v1 on to ringi serve.
// localhost, not 127.0.0.1: the login's cookie is then the page's too.
export default defineConfig({
  plugins: [react()],
  server: { port: 5173, strictPort: true, proxy: { '/v1': { target: 'http://localhost:7464', changeOrigin: true } } },
});
