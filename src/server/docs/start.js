// Shows the server's own document. No validator, no links to other sites: the page works offline.
window.onload = () => {
    window.ui = SwaggerUIBundle({
        url: '/openapi.json',
        dom_id: '#reference',
        deepLinking: true,
        displayRequestDuration: true,
        validatorUrl: null,
        tryItOutEnabled: true,
        presets: [SwaggerUIBundle.presets.apis],
    });
};
